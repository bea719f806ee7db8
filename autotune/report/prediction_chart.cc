#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/measure/statistics.h"
#include "autotune/report/scale.h"
#include "autotune/report/sections.h"

namespace coconet {
namespace {

constexpr double kHeight = 420;
constexpr int kTicks = 5;
constexpr size_t kWorst = 20;
/// Points whose places agree to a part of this are drawn once.
constexpr double kPlaces = 250;

double ShareWithin(absl::Span<const Prediction> predictions, double factor) {
  const auto within = absl::c_count_if(predictions, [&](const Prediction& p) {
    const double ratio = p.predicted_us / p.measured_us;
    return ratio < factor && ratio > 1 / factor;
  });
  return static_cast<double>(within) / static_cast<double>(predictions.size());
}

/// Calibrations by their keys, in the order of their newest predictions: the series of the chart.
std::map<std::string, size_t> SeriesOf(absl::Span<const Prediction> predictions) {
  std::map<std::string, size_t> series;
  for (const Prediction& p : predictions) series.emplace(p.calibration, series.size());
  return series;
}

Html Drawing(absl::Span<const Prediction> predictions, size_t& drawn) {
  std::vector<double> times;
  for (const Prediction& p : predictions) {
    times.push_back(p.predicted_us);
    times.push_back(p.measured_us);
  }
  const LogScale scale(times);  // of both axes, so that the identity is the diagonal
  ChartAxes axes{.x_title = "measured"};
  for (double tick : scale.Ticks(kTicks)) axes.x.emplace_back(scale.At(tick), RoundTimeText(tick));
  axes.y = axes.x;
  Html inside = AxesOf(axes, kHeight);
  inside.Add(Element(
      "line",
      {{"class", "identity"}, {"x1", "0%"}, {"y1", Length(kHeight)}, {"x2", "100%"}, {"y2", "0"}}));
  const std::map<std::string, size_t> series = SeriesOf(predictions);
  Html cloud;
  std::set<std::pair<int, int>> places;
  for (const Prediction& p : predictions) {
    const double x = scale.At(p.measured_us), y = scale.At(p.predicted_us);
    if (!places.emplace(static_cast<int>(kPlaces * x), static_cast<int>(kPlaces * y)).second)
      continue;
    ++drawn;
    cloud.Add(Mark(series.at(p.calibration), PercentOf(x), Length(kHeight * (1 - y)),
                   absl::StrCat(p.label, ": predicted ", TimeText(p.predicted_us), ", measured ",
                                TimeText(p.measured_us))));
  }
  inside.Add(Element("g", {{"class", "cloud"}}, {cloud}));
  return Element("div", {{"class", "plot"}},
                 {Element("svg",
                          {{"height", Length(kHeight)},
                           {"role", "img"},
                           {"aria-label",
                            "Predicted times over measured times, both logarithmic; "
                            "the table below has the numbers"}},
                          {inside})});
}

Html Legend(absl::Span<const Prediction> predictions) {
  std::map<std::string, std::vector<double>> errors;
  for (const Prediction& p : predictions) errors[p.calibration].push_back(std::fabs(p.error()));
  const std::map<std::string, size_t> series = SeriesOf(predictions);
  std::vector<std::pair<size_t, Html>> items;
  for (auto& [calibration, of] : errors) {
    const size_t count = of.size();
    items.emplace_back(
        series.at(calibration),
        Element("li", {},
                {Element("svg", {{"aria-hidden", "true"}},
                         {Mark(series.at(calibration), "20", "8", "")}),
                 Element("span", {},
                         absl::StrCat("calibration ", calibration.substr(0, 12), ": ", count,
                                      " predictions, median error ",
                                      absl::StrFormat("%.1f %%", 100 * Median(std::move(of)))))}));
  }
  absl::c_sort(items, [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Html> ordered;
  for (const auto& [place, item] : items) ordered.push_back(item);
  ordered.push_back(Element(
      "li", {},
      {Element(
           "svg", {{"aria-hidden", "true"}},
           {Element("line",
                    {{"class", "identity"}, {"x1", "0"}, {"x2", "40"}, {"y1", "8"}, {"y2", "8"}})}),
       Element("span", {}, "identity: as long as predicted; above it, faster than predicted")}));
  return Element("ul", {{"class", "legend"}}, ordered);
}

Html WorstTable(absl::Span<const Prediction> predictions) {
  std::vector<const Prediction*> worst;
  for (const Prediction& p : predictions) worst.push_back(&p);
  const auto distance = [](const Prediction* p) {
    return std::fabs(std::log(p->predicted_us / p->measured_us));
  };
  absl::c_stable_sort(
      worst, [&](const Prediction* a, const Prediction* b) { return distance(a) > distance(b); });
  worst.resize(std::min(worst.size(), kWorst));
  std::vector<std::vector<HtmlCell>> rows;
  for (const Prediction* p : worst) {
    rows.push_back(
        {{Element("code", {}, {LongWords(p->label)}), p->label},
         {Words(TimeText(p->predicted_us)), absl::StrCat(p->predicted_us)},
         {Words(TimeText(p->measured_us)), absl::StrCat(p->measured_us)},
         {Words(absl::StrFormat("%+.0f %%", 100 * p->error())), absl::StrCat(p->error())},
         {Words(DateText(p->created_s)), absl::StrCat(p->created_s)}});
  }
  return HtmlTable("The predictions that were farthest off",
                   {"launches", "#predicted", "#measured", "#error", "when"}, rows, true);
}

}  // namespace

Html PredictionChart(absl::Span<const Prediction> predictions) {
  if (predictions.empty())
    return Note(
        "The cache has no predictions: no training step was planned with calibrated rates.");
  size_t drawn = 0;
  const Html drawing = Drawing(predictions, drawn);
  const std::string hidden = drawn == predictions.size()
                                 ? ""
                                 : absl::StrCat(" Of ", predictions.size(), " predictions ", drawn,
                                                " are drawn: the others lie under these.");
  return Element(
      "article", {{"class", "card"}},
      {Note(absl::StrCat(
           "Upwards: predicted; to the right: measured; both axes are logarithmic. ",
           absl::StrFormat("%.0f %% of the predictions are within 10 %% of what was "
                           "measured, %.0f %% within a factor of two.",
                           100 * ShareWithin(predictions, 1.1), 100 * ShareWithin(predictions, 2)),
           hidden)),
       drawing, Legend(predictions), Element("h4", {}, "Farthest off"), WorstTable(predictions)});
}

}  // namespace coconet
