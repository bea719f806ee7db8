#include "autotune/simulation/timeline.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/chrome_trace.h"

namespace coconet {
namespace {

/// By rank and task: the task in front of it on its lane; -1: none.
std::vector<int> InFront(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<int> front(timeline.tasks.size(), -1);
  std::vector<int> last(timeline.simulated_ranks * graph.lanes.size(), -1);
  for (int index : timeline.order) {
    const int rank = index / graph.size(), t = index % graph.size();
    int& on_lane = last[rank * graph.lanes.size() + graph.tasks[t].lane];
    front[index] = on_lane;
    on_lane = t;
  }
  return front;
}

}  // namespace

std::vector<CriticalTask> CriticalPath(const TaskGraph& graph, const Timeline& timeline) {
  if (graph.tasks.empty()) return {};
  const std::vector<int> front = InFront(graph, timeline);
  const auto end_of = [&](const CriticalTask& t) { return timeline.Of(t.rank, t.task).end; };
  CriticalTask current;
  for (int rank = 0; rank < timeline.simulated_ranks; ++rank) {
    for (int t = 0; t < graph.size(); ++t) {
      if (end_of({rank, t}) > end_of(current)) current = {rank, t};
    }
  }
  std::vector<CriticalTask> path;
  // Tasks of no duration begin when they end: each task is on the path at most once.
  std::vector<bool> seen(timeline.tasks.size());
  while (true) {
    path.push_back(current);
    seen[current.rank * graph.size() + current.task] = true;
    CriticalTask next{-1, -1};
    const auto consider = [&](int rank, int t) {
      if (t < 0 || seen[rank * graph.size() + t]) return;
      if (next.task < 0 || end_of({rank, t}) > end_of(next)) next = {rank, t};
    };
    const bool meets = graph.tasks[current.task].kind == TaskKind::kCollective;
    const int first = meets ? 0 : current.rank;
    const int last = meets ? timeline.simulated_ranks - 1 : current.rank;
    for (int rank = first; rank <= last; ++rank) {
      for (int before : graph.tasks[current.task].after) consider(rank, before);
    }
    for (int rank = first; rank <= last; ++rank)
      consider(rank, front[rank * graph.size() + current.task]);
    if (next.task < 0) break;
    current = next;
  }
  absl::c_reverse(path);
  return path;
}

double ExposedCommunication(const TaskGraph& graph, const Timeline& timeline) {
  double most = 0;
  for (int rank = 0; rank < timeline.simulated_ranks; ++rank) {
    std::vector<std::tuple<double, int, int>> changes;  // time, computations, collectives
    for (int t = 0; t < graph.size(); ++t) {
      const Timeline::Interval& interval = timeline.Of(rank, t);
      const int computes = graph.tasks[t].kind == TaskKind::kComputation;
      const int communicates = graph.tasks[t].kind == TaskKind::kCollective;
      changes.emplace_back(interval.begin, computes, communicates);
      changes.emplace_back(interval.end, -computes, -communicates);
    }
    absl::c_sort(changes);
    double exposed = 0, since = 0;
    int computations = 0, collectives = 0;
    for (const auto& [time, computes, communicates] : changes) {
      if (computations == 0 && collectives > 0) exposed += time - since;
      since = time;
      computations += computes;
      collectives += communicates;
    }
    most = std::max(most, exposed);
  }
  return most;
}

int64_t PeakBytes(const TaskGraph& graph, const Timeline& timeline) {
  int64_t peak = 0;
  for (int rank = 0; rank < timeline.simulated_ranks; ++rank) {
    std::vector<std::pair<double, int64_t>> changes;  // negative ones of a time come first
    for (const LiveValue& value : graph.values) {
      const bool is_made = value.made_by >= 0;
      changes.emplace_back(is_made ? timeline.Of(rank, value.made_by).begin
                                   : -std::numeric_limits<double>::infinity(),
                           value.bytes);
      if (value.stays) continue;
      double end = is_made ? timeline.Of(rank, value.made_by).end : 0;
      for (int taker : value.taken_by) end = std::max(end, timeline.Of(rank, taker).end);
      changes.emplace_back(end, -value.bytes);
    }
    absl::c_sort(changes);
    int64_t bytes = 0;
    for (const auto& [time, change] : changes) peak = std::max(peak, bytes += change);
  }
  return peak;
}

std::string LanesText(const TaskGraph& graph, const Timeline& timeline, int columns) {
  size_t widest = 0;
  for (const Lane& lane : graph.lanes) widest = std::max(widest, lane.name.size());
  const double us = timeline.us / columns;  // of a column
  std::string text;
  for (size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    std::vector<double> busy(static_cast<size_t>(columns));
    for (int t = 0; t < graph.size() && us > 0; ++t) {
      if (graph.tasks[t].lane != static_cast<int>(lane)) continue;
      const Timeline::Interval& of = timeline.Of(0, t);
      const int first = std::clamp(static_cast<int>(of.begin / us), 0, columns - 1);
      const int last = std::clamp(static_cast<int>(of.end / us), 0, columns - 1);
      for (int c = first; c <= last; ++c)
        busy[c] += std::max(0.0, std::min(of.end, (c + 1) * us) - std::max(of.begin, c * us)) / us;
    }
    std::string line(graph.lanes[lane].name);
    line.resize(widest, ' ');
    line += " |";
    constexpr absl::string_view kShades = " .:+#";
    for (double share : busy)
      line += share <= 0 ? ' ' : kShades[std::clamp(static_cast<int>(4 * share + 0.5), 1, 4)];
    absl::StrAppend(&text, line, "|\n");
  }
  return text;
}

JsonText ChromeTrace(const TaskGraph& graph, const Timeline& timeline) {
  std::vector<JsonText> events;
  for (int rank = 0; rank < timeline.simulated_ranks; ++rank) {
    for (size_t lane = 0; lane < graph.lanes.size(); ++lane) {
      events.push_back(NameOfThread({.process = rank, .thread = static_cast<int64_t>(lane)},
                                    graph.lanes[lane].name));
    }
  }
  for (int index : timeline.order) {
    const Timeline::Interval& interval = timeline.tasks[index];
    const Task& task = graph.tasks[index % graph.size()];
    events.push_back(TextOf(ChromeEvent{.name = task.label,
                                        .category = std::string(Name(task.kind)),
                                        .begin_us = interval.begin,
                                        .us = interval.end - interval.begin,
                                        .lane = {index / graph.size(), task.lane}}));
  }
  return JsonObject().Set("traceEvents", JsonList(events)).Text();
}

}  // namespace coconet
