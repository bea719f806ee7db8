#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/measure/statistics.h"
#include "autotune/report/page.h"
#include "autotune/report/report.h"
#include "autotune/report/scale.h"
#include "autotune/simulation/timeline.h"

namespace coconet {
namespace {

constexpr double kLaneHeight = 34, kAxisHeight = 20;
constexpr int kTicks = 5;
constexpr size_t kMostTasks = 2000;  // of the table

/// "l0", else what the launch does.
std::string NameOf(const Task& task) { return task.layer.empty() ? task.label : task.layer; }

std::string TextOf(const Task& task, const Timeline::Interval& at) {
  return absl::StrCat(task.layer.empty() ? "" : absl::StrCat(task.layer, ": "), task.label, ", ",
                      TimeText(at.begin), " to ", TimeText(at.end), ", ",
                      TimeText(at.end - at.begin));
}

/// Colours of layers in the order of their first tasks.
std::map<std::string, size_t> SeriesOf(const PlannedIteration& planned) {
  std::map<std::string, size_t> series;
  for (int index : planned.timeline.order)
    series.emplace(planned.tasks.tasks[index % planned.tasks.size()].layer, series.size());
  return series;
}

Html TaskBox(const PlannedIteration& planned, int t, size_t series, bool critical) {
  const Task& task = planned.tasks.tasks[t];
  const Timeline::Interval& at = planned.timeline.Of(0, t);
  const double us = planned.timeline.us;
  const std::string x = PercentOf(at.begin / us), width = PercentOf((at.end - at.begin) / us);
  const std::string height = Length(kLaneHeight - 4);
  return Element(
      "g", {{"class", absl::StrCat("task ", SeriesClass(series), critical ? " critical" : "")}},
      {Element("title", {}, TextOf(task, at)),
       Element("rect", {{"x", x}, {"y", "2"}, {"width", width}, {"height", height}, {"rx", "2"}}),
       Element("svg", {{"x", x}, {"y", "2"}, {"width", width}, {"height", height}},
               {Element("text", {{"x", "3"}, {"y", "19"}}, NameOf(task))})});
}

Html LaneRows(const PlannedIteration& planned) {
  const TaskGraph& graph = planned.tasks;
  const std::map<std::string, size_t> series = SeriesOf(planned);
  std::set<int> critical;
  for (const CriticalTask& task : CriticalPath(graph, planned.timeline))
    if (task.rank == 0) critical.insert(task.task);
  Html html;
  for (size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    std::vector<Html> boxes = {Element("rect", {{"class", "frame"},
                                                {"x", "0"},
                                                {"y", "0"},
                                                {"width", "100%"},
                                                {"height", Length(kLaneHeight)}})};
    for (int t = 0; t < graph.size(); ++t) {
      if (graph.tasks[t].lane == static_cast<int>(lane))
        boxes.push_back(
            TaskBox(planned, t, series.at(graph.tasks[t].layer), critical.count(t) != 0));
    }
    html.Add(Element("div", {{"class", "lane-name"}}, graph.lanes[lane].name))
        .Add(Element("svg",
                     {{"height", Length(kLaneHeight)},
                      {"role", "img"},
                      {"aria-label", absl::StrCat("Tasks of the lane ", graph.lanes[lane].name,
                                                  "; the table below lists them")}},
                     boxes));
  }
  return html;
}

Html TimeAxis(double us) {
  std::vector<Html> labels;
  for (int tick = 0; tick < kTicks; ++tick) {
    const double share = static_cast<double>(tick) / (kTicks - 1);
    labels.push_back(Element("text",
                             {{"x", PercentOf(share)},
                              {"y", "14"},
                              {"text-anchor", tick == 0            ? "start"
                                              : tick == kTicks - 1 ? "end"
                                                                   : "middle"}},
                             TimeText(share * us)));
  }
  return Element("svg", {{"height", Length(kAxisHeight)}, {"aria-hidden", "true"}}, labels);
}

Html Button(absl::string_view zoom, absl::string_view text) {
  return Element("button",
                 {{"type", "button"}, {"class", "tool"}, {"data-zoom", std::string(zoom)}}, text);
}

Html Lanes(const PlannedIteration& planned) {
  if (planned.timeline.us <= 0 || planned.tasks.tasks.empty())
    return Note("The plan has no task that takes time.");
  return Element(
      "article", {{"class", "card"}},
      {Note("One rank, from the beginning of an iteration to its end. Boxes are launches, with the "
            "name of the layer that they work for; those with heavy outlines are on the critical "
            "path: shortening another alone gains nothing. A box too narrow for its name shows it "
            "when pointed at, and in the table."),
       Element("div", {{"class", "zoom"}, {"role", "group"}, {"aria-label", "Width of the lanes"}},
               {Button("2", "wider"), Button("0.5", "narrower"), Button("0", "as wide as the page"),
                Element("span", {{"id", "zoomed"}, {"class", "note"}, {"aria-live", "polite"}})}),
       Element("div",
               {{"class", "scrolls"},
                {"tabindex", "0"},
                {"role", "region"},
                {"aria-label", "Lanes of the plan"}},
               {Element("div", {{"class", "lanes"}},
                        {LaneRows(planned), TimeAxis(planned.timeline.us)})})});
}

std::vector<HtmlCell> FiguresRow(const std::string& what, const PlanFigures& f) {
  const auto time = [](double us) { return HtmlCell{Words(TimeText(us)), absl::StrCat(us)}; };
  return {{Words(what)},
          time(f.us),
          {Words(absl::StrFormat("%.4f", f.us / f.bound_us))},
          {Words(absl::StrCat(f.kernels))},
          {Words(absl::StrCat(f.collectives))},
          time(f.computation_us),
          time(f.communication_us),
          time(f.exposed_us),
          {Words(absl::StrFormat("%.1f MiB", static_cast<double>(f.peak_bytes) / (1 << 20)))}};
}

Html Figures(const PlannedIteration& planned) {
  return Element("article", {{"class", "card"}},
                 {HtmlTable("The plan in figures",
                            {"plan", "#time", "#over bound", "#kernels", "#collectives",
                             "#computes", "#communicates", "#exposed", "#peak memory"},
                            {FiguresRow("found", planned.found),
                             FiguresRow("as written, combined to 30 MiB", planned.combined)}),
                  Note(absl::StrCat("Bounds of the found plan: ", TimeText(planned.found.bound_us),
                                    " by dependencies, ", TimeText(planned.found.full_overlap_us()),
                                    " by full overlap. ", planned.operations, " operations in ",
                                    planned.launches, " launches; ", planned.evaluations,
                                    " plans were simulated."))});
}

/// The time of each layer on each lane.
Html LayersTable(const PlannedIteration& planned) {
  struct Sums {
    int launches = 0;
    double computes = 0, communicates = 0;
  };
  std::map<std::string, Sums> sums;
  std::vector<std::string> order;
  for (int index : planned.timeline.order) {
    if (index >= planned.tasks.size()) continue;  // of the other ranks
    const Task& task = planned.tasks.tasks[index];
    const auto [at, is_new] = sums.try_emplace(task.layer);
    if (is_new) order.push_back(task.layer);
    const Timeline::Interval& interval = planned.timeline.Of(0, index);
    ++at->second.launches;
    (task.kind == TaskKind::kCollective ? at->second.communicates : at->second.computes) +=
        interval.end - interval.begin;
  }
  std::vector<std::vector<HtmlCell>> rows;
  for (const std::string& layer : order) {
    const Sums& of = sums[layer];
    rows.push_back({{LongWords(layer.empty() ? "(no layer)" : layer)},
                    {Words(absl::StrCat(of.launches)), absl::StrCat(of.launches)},
                    {Words(TimeText(of.computes)), absl::StrCat(of.computes)},
                    {Words(of.communicates > 0 ? TimeText(of.communicates) : ""),
                     absl::StrCat(of.communicates)}});
  }
  return Element(
      "article", {{"class", "card"}},
      {HtmlTable("Layers", {"layer", "#launches", "#computes", "#communicates"}, rows, true)});
}

Html TasksTable(const PlannedIteration& planned) {
  std::vector<int> shown(planned.tasks.size());
  for (int t = 0; t < planned.tasks.size(); ++t) shown[t] = t;
  const auto time = [&](int t) {
    return planned.timeline.Of(0, t).end - planned.timeline.Of(0, t).begin;
  };
  if (shown.size() > kMostTasks) {
    absl::c_stable_sort(shown, [&](int a, int b) { return time(a) > time(b); });
    shown.resize(kMostTasks);
  }
  absl::c_stable_sort(shown, [&](int a, int b) {
    return planned.timeline.Of(0, a).begin < planned.timeline.Of(0, b).begin;
  });
  std::vector<std::vector<HtmlCell>> rows;
  for (int t : shown) {
    const Task& task = planned.tasks.tasks[t];
    const Timeline::Interval& at = planned.timeline.Of(0, t);
    rows.push_back({{Words(TimeText(at.begin)), absl::StrCat(at.begin)},
                    {Words(TimeText(time(t))), absl::StrCat(time(t))},
                    {Words(planned.tasks.lanes[task.lane].name)},
                    {LongWords(task.layer)},
                    {Element("code", {}, {LongWords(task.label)})}});
  }
  const std::string summary =
      rows.size() == static_cast<size_t>(planned.tasks.size())
          ? absl::StrCat("All ", rows.size(), " launches")
          : absl::StrCat("The ", rows.size(), " longest of ", planned.tasks.size(), " launches");
  return Element("article", {{"class", "card"}},
                 {Element("details", {},
                          {Element("summary", {}, summary),
                           HtmlTable("Launches", {"#begins", "#takes", "lane", "layer", "launch"},
                                     rows, true)})});
}

}  // namespace

std::string PlanHtml(const std::string& title, absl::Span<const std::string> lines,
                     const PlannedIteration& planned) {
  return Page(title, std::vector<std::string>(lines.begin(), lines.end()),
              {{"lanes", "Lanes", Lanes(planned)},
               {"figures", "Figures", Figures(planned)},
               {"layers", "Layers", LayersTable(planned)},
               {"launches", "Launches", TasksTable(planned)}});
}

}  // namespace coconet
