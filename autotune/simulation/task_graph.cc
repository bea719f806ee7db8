#include "autotune/simulation/task_graph.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

template <class... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("simulate: ", parts...));
}

absl::Status CheckTasks(const TaskGraph& graph) {
  for (int t = 0; t < graph.size(); ++t) {
    const Task& task = graph.tasks[t];
    if (task.lane < 0 || task.lane >= static_cast<int>(graph.lanes.size()))
      return Invalid("task ", t, " \"", task.label, "\": want one of ", graph.lanes.size(),
                     " lanes, have lane ", task.lane);
    if (!std::isfinite(task.us) || task.us < 0)
      return Invalid("task ", t, " \"", task.label, "\": want a time of 0 us or more, have ",
                     task.us);
    if (!std::isfinite(task.priority))
      return Invalid("task ", t, " \"", task.label, "\": want a finite priority, have ",
                     task.priority);
    for (int before : task.after) {
      if (before < 0 || before >= graph.size())
        return Invalid("task ", t, " \"", task.label, "\": want it after one of ", graph.size(),
                       " tasks, have ", before);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLanes(const TaskGraph& graph) {
  std::vector<size_t> tasks_of(graph.lanes.size());
  for (const Task& task : graph.tasks) ++tasks_of[task.lane];
  std::vector<bool> seen(graph.tasks.size());
  for (size_t lane = 0; lane < graph.lanes.size(); ++lane) {
    const std::vector<int>& order = graph.lanes[lane].order;
    if (order.empty()) continue;
    if (order.size() != tasks_of[lane])
      return Invalid("lane ", graph.lanes[lane].name, ": want an order of its ", tasks_of[lane],
                     " tasks, have one of ", order.size());
    for (int t : order) {
      if (t < 0 || t >= graph.size() || seen[t] || graph.tasks[t].lane != static_cast<int>(lane))
        return Invalid("lane ", graph.lanes[lane].name,
                       ": want each of its tasks once in its order, have ", t);
      seen[t] = true;
    }
  }
  return absl::OkStatus();
}

}  // namespace

const char* Name(TaskKind kind) {
  switch (kind) {
    case TaskKind::kComputation:
      return "computation";
    case TaskKind::kCollective:
      return "collective";
    case TaskKind::kHost:
      return "host";
  }
  CC_CHECK(false);
}

absl::Status CheckTaskGraph(const TaskGraph& graph) {
  RETURN_IF_ERROR(CheckTasks(graph));
  RETURN_IF_ERROR(CheckLanes(graph));
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const LiveValue& value = graph.values[v];
    if (value.bytes < 0) return Invalid("value ", v, ": want 0 bytes or more, have ", value.bytes);
    if (value.made_by < -1 || value.made_by >= graph.size())
      return Invalid("value ", v, ": want a task that makes it, have ", value.made_by);
    for (int taker : value.taken_by) {
      if (taker < 0 || taker >= graph.size())
        return Invalid("value ", v, ": want tasks that take it, have ", taker);
    }
  }
  return absl::OkStatus();
}

}  // namespace coconet
