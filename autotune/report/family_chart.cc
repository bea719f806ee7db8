#include <algorithm>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/measure/statistics.h"
#include "autotune/report/key_fields.h"
#include "autotune/report/scale.h"
#include "autotune/report/sections.h"
#include "autotune/session/explanation.h"

namespace coconet {
namespace {

constexpr double kHeight = 380;
constexpr int kTicks = 5;

/// A size in whole: "1,048,576".
std::string WholeText(double size) {
  std::string digits = absl::StrFormat("%.0f", size);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return digits;
}

/// The chart's axes and how values get there.
class Plane {
 public:
  explicit Plane(const SizeFamily& family) : x_(Sizes(family)), y_(Times(family)) {}

  std::string X(double size) const { return x_.Percent(size); }
  std::string Y(double us) const { return Length(kHeight * (1 - y_.At(us))); }
  Html Axes(const std::string& size_is) const {
    ChartAxes axes{.x_title = size_is};
    for (double tick : x_.Ticks(kTicks)) axes.x.emplace_back(x_.At(tick), CountText(tick));
    for (double tick : y_.Ticks(2 * kTicks)) axes.y.emplace_back(y_.At(tick), RoundTimeText(tick));
    return AxesOf(axes, kHeight);
  }
  /// Straight lines through points (size, microseconds).
  Html Path(absl::string_view css, const std::vector<std::pair<double, double>>& points) const {
    Html html;
    for (size_t i = 0; i + 1 < points.size(); ++i) {
      html.Add(Element("line", {{"class", std::string(css)},
                                {"x1", X(points[i].first)},
                                {"y1", Y(points[i].second)},
                                {"x2", X(points[i + 1].first)},
                                {"y2", Y(points[i + 1].second)}}));
    }
    return html;
  }

 private:
  static std::vector<double> Sizes(const SizeFamily& family) {
    std::vector<double> sizes;
    for (const FamilySize& size : family.sizes) sizes.push_back(size.size);
    return sizes;
  }
  static std::vector<double> Times(const SizeFamily& family) {
    const std::vector<std::string> order = family.Schedules();
    std::vector<double> times;
    for (const FamilySize& size : family.sizes) {
      times.push_back(size.limit_us);
      for (size_t s = 0; s < std::min(order.size(), kSeries); ++s) {
        const auto at = size.by_schedule.find(order[s]);
        if (at == size.by_schedule.end()) continue;
        times.push_back(at->second.timing.low_us);
        times.push_back(at->second.timing.high_us);
      }
    }
    return times;
  }

  const LogScale x_, y_;
};

Html Series(const SizeFamily& family, const Plane& plane, const std::string& schedule,
            size_t series) {
  const std::string css = SeriesClass(series);
  std::vector<std::pair<double, double>> run;  // of neighbouring sizes
  Html lines, marks;
  for (const FamilySize& size : family.sizes) {
    const auto at = size.by_schedule.find(schedule);
    if (at == size.by_schedule.end()) {
      lines.Add(plane.Path(absl::StrCat("series ", css), run));
      run.clear();
      continue;
    }
    const Timing& t = at->second.timing;
    run.emplace_back(size.size, t.median_us);
    if (t.samples > 1) {
      marks.Add(Element("line", {{"class", absl::StrCat("bar ", css)},
                                 {"x1", plane.X(size.size)},
                                 {"x2", plane.X(size.size)},
                                 {"y1", plane.Y(t.low_us)},
                                 {"y2", plane.Y(t.high_us)}}));
    }
    marks.Add(Mark(series, plane.X(size.size), plane.Y(t.median_us),
                   absl::StrCat(schedule, " at ", WholeText(size.size), ": ", TimeText(t.median_us),
                                ", ", at->second.config)));
  }
  return lines.Add(plane.Path(absl::StrCat("series ", css), run)).Add(marks);
}

Html LegendItem(const Html& sample, const std::string& text) {
  return Element("li", {},
                 {Element("svg", {{"aria-hidden", "true"}}, {sample}),
                  Element("span", {}, {LongWords(text)})});
}

Html Legend(const SizeFamily& family, const std::vector<std::string>& order) {
  std::vector<Html> items;
  for (size_t s = 0; s < order.size(); ++s) {
    const Html line = Element("line", {{"class", absl::StrCat("series ", SeriesClass(s))},
                                       {"x1", "0"},
                                       {"x2", "40"},
                                       {"y1", "8"},
                                       {"y2", "8"}});
    items.push_back(LegendItem(Html(line).Add(Mark(s, "20", "8", "")), order[s]));
  }
  if (family.best_bytes_per_us > 0) {
    items.push_back(LegendItem(
        Element("line", {{"class", "limit"}, {"x1", "0"}, {"x2", "40"}, {"y1", "8"}, {"y2", "8"}}),
        absl::StrFormat("limit: the bytes that the leanest variant must move at %.1f GB/s, the "
                        "best effective bandwidth seen at any of these sizes",
                        family.best_bytes_per_us / 1e3)));
  }
  if (!family.crossovers.empty()) {
    items.push_back(LegendItem(
        Element("circle", {{"class", "crossing"}, {"cx", "20"}, {"cy", "8"}, {"r", "6"}}),
        "crossover: from here on another schedule is the fastest"));
  }
  return Element("ul", {{"class", "legend"}}, items);
}

Html Drawing(const SizeFamily& family, const std::vector<std::string>& order) {
  const Plane plane(family);
  Html inside = Element("title", {}, absl::StrCat("Time over size of ", family.title));
  inside.Add(plane.Axes(family.size_is));
  std::vector<std::pair<double, double>> limit;
  for (const FamilySize& size : family.sizes)
    if (size.limit_us > 0) limit.emplace_back(size.size, size.limit_us);
  inside.Add(plane.Path("limit", limit));
  for (size_t s = order.size(); s-- > 0;)
    inside.Add(Series(family, plane, order[s], s));  // the fastest on top
  for (const Crossover& c : family.crossovers) {
    if (c.size == 0) continue;
    inside.Add(Element(
        "circle",
        {{"class", "crossing"}, {"cx", plane.X(c.size)}, {"cy", plane.Y(c.us)}, {"r", "6"}},
        {Element("title", {},
                 absl::StrCat("from ", c.from, " to ", c.to, " at about ", CountText(c.size)))}));
  }
  return Element("div", {{"class", "plot"}},
                 {Element("svg",
                          {{"height", Length(kHeight)},
                           {"role", "img"},
                           {"aria-label", absl::StrCat("Time over size of ", family.title,
                                                       "; the table below has the numbers")}},
                          {inside})});
}

Html CrossoverTable(const SizeFamily& family) {
  if (family.crossovers.empty())
    return Note("One schedule is the fastest at all of these sizes: there is no crossover.");
  std::vector<std::vector<HtmlCell>> rows;
  for (const Crossover& c : family.crossovers) {
    const std::string at = c.size > 0
                               ? CountText(c.size)
                               : absl::StrCat(CountText(c.below), " to ", CountText(c.above));
    rows.push_back(
        {{Words(at)},
         {Element("code", {}, {LongWords(c.from)})},
         {Element("code", {}, {LongWords(c.to)})},
         {Words(c.size > 0 ? TimeText(c.us) : "")},
         {Words(c.is_certain ? "yes"
                : c.size > 0 ? "no: their confidence intervals overlap at a size beside it"
                             : "not known: one was not timed at both sizes beside it")}});
  }
  return HtmlTable("Crossovers", {"#about at", "from", "to", "#both take", "clear of noise"}, rows);
}

Html TimesTable(const SizeFamily& family, const std::vector<std::string>& schedules) {
  std::vector<std::string> titles = {"schedule"};
  for (const FamilySize& size : family.sizes)
    titles.push_back(absl::StrCat("#", WholeText(size.size)));
  std::vector<std::vector<HtmlCell>> rows;
  for (const std::string& schedule : schedules) {
    std::vector<HtmlCell>& row =
        rows.emplace_back(std::vector<HtmlCell>{{Element("code", {}, {LongWords(schedule)})}});
    for (const FamilySize& size : family.sizes) {
      const auto at = size.by_schedule.find(schedule);
      if (at == size.by_schedule.end()) {
        row.push_back({Words("")});
        continue;
      }
      const double us = at->second.timing.median_us;
      row.push_back(
          {size.best == schedule ? Element("strong", {}, TimeText(us) + " *") : Words(TimeText(us)),
           absl::StrCat(us)});
    }
  }
  return HtmlTable("Times by size", titles, rows, true)
      .Add(Note("* what runs at that size. Empty: not timed there."));
}

}  // namespace

Html FamilyChart(const SizeFamily& family) {
  const std::vector<std::string> all = family.Schedules();
  std::vector<std::string> drawn = all;
  drawn.resize(std::min(all.size(), kSeries));
  const ReportKey key = KeyOf(family.sizes[0].record->record.key_text);
  Html card = Element("h3", {}, family.title);
  card.Add(Note(key.Field("device from rank 0"))).Add(Drawing(family, drawn));
  card.Add(Legend(family, drawn));
  if (drawn.size() < all.size())
    card.Add(Note(absl::StrCat("Drawn are the ", drawn.size(), " schedules of ", all.size(),
                               " that come nearest to the fastest; the table has all.")));
  card.Add(Element("h4", {}, "Crossovers")).Add(CrossoverTable(family));
  card.Add(
      Element("details", {},
              {Element("summary", {}, "Times of all schedules by size"), TimesTable(family, all)}));
  return Element("article", {{"class", "card"}}, {card});
}

}  // namespace coconet
