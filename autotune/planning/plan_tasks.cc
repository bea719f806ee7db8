#include "autotune/planning/plan_tasks.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "autotune/planning/layers.h"
#include "autotune/simulation/bounds.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

std::string LabelOf(const IterationPlan& plan, const IterationPlan::Group& group) {
  const std::vector<NodeId> nodes = plan.graph().NodesOf(group.items);
  const std::string first = OpText(plan.graph().schedule().program().op(nodes[0]));
  if (nodes.size() == 1) return absl::StrCat(first, " %", nodes[0]);
  return absl::StrCat(group.is_collective ? first : "kernel", " of ", nodes.size(), " from %",
                      nodes[0]);
}

int64_t BytesOf(const PlanGraph& graph, NodeId id) {
  const TensorType& type = graph.schedule().type(id);
  const int64_t elements = type.layout.sliced()
                               ? SlicingOf(type, graph.target().ranks).slice_elements()
                               : NumElements(type.shape);
  return elements * static_cast<int64_t>(SizeOf(type.dtype));
}

int TaskOf(const IterationPlan& plan, int group) {
  const IterationPlan::Group& g = plan.group(group);
  return g.lane == 0 ? g.position : static_cast<int>(plan.order(0).size()) + g.position;
}

/// What an item leaves in memory for other groups.
void AddValues(const IterationPlan& plan, int item, std::vector<LiveValue>& values) {
  const PlanGraph& graph = plan.graph();
  const TypedGraph& program = graph.schedule().program();
  for (NodeId id : graph[item].nodes) {
    if (RoleOf(program.op(id)) == Role::kStore) continue;
    LiveValue value{.bytes = BytesOf(graph, id), .made_by = TaskOf(plan, plan.group_of(item))};
    bool is_stored = false;
    for (NodeId user : program.users()[id]) {
      const int taker = graph.item_of(user);
      if (taker < 0) continue;
      const int group = plan.group_of(taker);
      if (group != plan.group_of(item))
        value.taken_by.push_back(TaskOf(plan, group));
      else
        is_stored |= As<Update>(program.graph(), user) != nullptr;
    }
    if (!is_stored && !value.taken_by.empty()) values.push_back(std::move(value));
  }
}

}  // namespace

int GroupOfTask(const IterationPlan& plan, int task) {
  const int computing = static_cast<int>(plan.order(0).size());
  return task < computing ? plan.order(0)[task] : plan.order(1)[task - computing];
}

TaskGraph TimesOf(const IterationPlan& plan) {
  TaskGraph tasks{.lanes = {{.name = "computation"}, {.name = "communication"}}};
  for (int lane : {0, 1}) {
    for (int group : plan.order(lane)) {
      const IterationPlan::Group& g = plan.group(group);
      Task task{.kind = g.is_collective ? TaskKind::kCollective : TaskKind::kComputation,
                .us = g.us,
                .lane = lane};
      for (int before : plan.After(group)) task.after.push_back(TaskOf(plan, before));
      tasks.lanes[lane].order.push_back(tasks.size());
      tasks.tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

TaskGraph TasksOf(const IterationPlan& plan) {
  TaskGraph tasks = TimesOf(plan);
  const PlanGraph& graph = plan.graph();
  const std::vector<std::string> layers = LayersOf(graph.schedule().graph());
  for (int t = 0; t < tasks.size(); ++t) {
    const IterationPlan::Group& group = plan.group(GroupOfTask(plan, t));
    tasks.tasks[t].label = LabelOf(plan, group);
    tasks.tasks[t].layer = LayersText(layers, graph.NodesOf(group.items));
  }
  for (int item = 0; item < graph.size(); ++item) AddValues(plan, item, tasks.values);
  for (NodeId id = 0; id < graph.schedule().program().size(); ++id) {
    if (RoleOf(graph.schedule().program().op(id)) == Role::kDeclaration)
      tasks.values.push_back({.bytes = BytesOf(graph, id), .stays = true});
  }
  return tasks;
}

double BoundOf(const IterationPlan& plan) {
  const PlanGraph& graph = plan.graph();
  // Kernels as they are; each collective alone, with its share of a call of all of its kind.
  TaskGraph tasks{.lanes = {{.name = "computation"}, {.name = "communication"}}};
  std::vector<int> task_of(graph.size(), -1);  // by item
  absl::flat_hash_map<int, Work> all;
  for (int item = 0; item < graph.size(); ++item) {
    if (!graph.IsCollective(item)) continue;
    const Work& work = graph.WorkOfCollective(item);
    const auto [sum, is_new] = all.try_emplace(graph.bucket(item), work);
    if (is_new) continue;
    sum->second.bytes += work.bytes;
    sum->second.tensors += work.tensors;
  }
  absl::flat_hash_map<int, double> us;
  for (const auto& [bucket, work] : all) us[bucket] = graph.model().Us(work);
  for (int group : plan.order(0)) {
    if (plan.group(group).is_collective) continue;
    for (int item : plan.group(group).items) task_of[item] = tasks.size();
    tasks.tasks.push_back({.us = plan.group(group).us});
  }
  for (int item = 0; item < graph.size(); ++item) {
    if (!graph.IsCollective(item)) continue;
    task_of[item] = tasks.size();
    const int bucket = graph.bucket(item);
    const double bytes = all.at(bucket).bytes;
    const double share = bytes > 0 ? us.at(bucket) * graph.WorkOfCollective(item).bytes / bytes : 0;
    tasks.tasks.push_back({.kind = TaskKind::kCollective, .us = share, .lane = 1});
  }
  for (int item = 0; item < graph.size(); ++item) {
    std::vector<int>& after = tasks.tasks[task_of[item]].after;
    for (int before : graph[item].after) {
      if (task_of[before] != task_of[item]) after.push_back(task_of[before]);
    }
  }
  for (Task& task : tasks.tasks) {
    std::sort(task.after.begin(), task.after.end());
    task.after.erase(std::unique(task.after.begin(), task.after.end()), task.after.end());
  }
  const absl::StatusOr<Bounds> bounds = BoundsOf(tasks, graph.contention());
  CC_CHECK(bounds.ok());
  return bounds->dependencies_us;
}

}  // namespace coconet
