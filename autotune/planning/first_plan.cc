#include "autotune/planning/first_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "autotune/planning/plan_tasks.h"
#include "autotune/simulation/simulate.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/fuse_moves.h"

namespace coconet {
namespace {

/// Pairs of kernels by what their fusion saves. A pair is of items, one of each kernel, which still
/// name the kernels when these have grown.
class Savings {
 public:
  explicit Savings(IterationPlan& plan) : plan_(plan) {}

  void FuseWhileItSaves() {
    for (int group : plan_.order(0)) AddOf(group);
    while (!pairs_.empty()) {
      const auto [saving, first, second] = pairs_.top();
      pairs_.pop();
      const int a = plan_.group_of(first), b = plan_.group_of(second);
      if (a == b) continue;
      if (SavingOf(a, b) < saving) continue;  // the kernels have changed; added anew then
      if (!plan_.Merge(a, b)) continue;
      AddOf(plan_.group_of(first));
    }
  }

 private:
  /// 0 where the fusion is illegal.
  double SavingOf(int a, int b) const {
    const IterationPlan::Group &x = plan_.group(a), &y = plan_.group(b);
    if (x.is_collective || y.is_collective) return 0;
    std::vector<int> items = x.items;
    items.insert(items.end(), y.items.begin(), y.items.end());
    if (!plan_.graph().Fits(items)) return 0;
    return std::max(0.0, x.us + y.us - plan_.graph().UsOf(items));
  }

  /// The pairs of a kernel with those that it takes from and gives to.
  void AddOf(int group) {
    for (const std::vector<int>& others : {plan_.After(group), plan_.Before(group)}) {
      for (int other : others) {
        const double saving = SavingOf(group, other);
        if (saving > 0)
          pairs_.emplace(saving, plan_.group(group).items[0], plan_.group(other).items[0]);
      }
    }
  }

  IterationPlan& plan_;
  std::priority_queue<std::tuple<double, int, int>> pairs_;
};

/// What comes first of collectives that are ready: those with less computation before them, as
/// gradients become ready; or with less before them and more after them, as gathers of parameters
/// are wanted.
enum class FirstOf : uint8_t { kReady, kReadyAndWanted };

/// By group: its place in an order of the collectives, each after what it needs; groups that no
/// collective needs come last.
class CollectiveOrder {
 public:
  CollectiveOrder(const IterationPlan& plan, FirstOf first) : plan_(plan), seen_(NumberOfGroups()) {
    std::vector<std::pair<double, int>> by_work;
    for (int lane : {0, 1}) {
      for (int group : plan.order(lane)) {
        if (!plan.group(group).is_collective) continue;
        double us = ComputationBefore(group);
        if (first == FirstOf::kReadyAndWanted) us -= ComputationAfter(group);
        by_work.emplace_back(us, group);
      }
    }

    absl::c_stable_sort(by_work, [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [work, group] : by_work) collectives_.push_back(group);
  }

  std::vector<int> Places() const {
    std::vector<int> places(seen_.size(), std::numeric_limits<int>::max());
    int next = 0;
    for (int collective : collectives_) {
      std::vector<int> needed;  // not placed yet
      std::vector<int> stack = {collective};
      while (!stack.empty()) {
        const int group = stack.back();
        stack.pop_back();
        if (places[group] != std::numeric_limits<int>::max()) continue;
        places[group] = std::numeric_limits<int>::max() - 1;
        needed.push_back(group);
        for (int before : plan_.After(group)) stack.push_back(before);
      }
      absl::c_sort(needed, [&](int a, int b) {
        return std::pair(plan_.group(a).lane, plan_.group(a).position) <
               std::pair(plan_.group(b).lane, plan_.group(b).position);
      });
      for (int group : needed) places[group] = next++;
    }
    for (int group : plan_.order(0)) {
      if (places[group] == std::numeric_limits<int>::max()) places[group] = next++;
    }
    return places;
  }

 private:
  int NumberOfGroups() const {
    int most = 0;
    for (int lane : {0, 1}) {
      for (int group : plan_.order(lane)) most = std::max(most, group + 1);
    }
    return most;
  }

  double ComputationBefore(int collective) {
    return ComputationFrom(collective, [&](int group) { return plan_.After(group); });
  }
  double ComputationAfter(int collective) {
    return ComputationFrom(collective, [&](int group) { return plan_.Before(group); });
  }
  /// The time of all computation that is reached.
  double ComputationFrom(int collective,
                         absl::FunctionRef<std::vector<int>(int group)> neighbours) {
    double us = 0;
    std::vector<int> stack = {collective};
    seen_[collective] = ++searches_;
    while (!stack.empty()) {
      const int group = stack.back();
      stack.pop_back();
      if (!plan_.group(group).is_collective) us += plan_.group(group).us;
      for (int next : neighbours(group)) {
        if (seen_[next] == searches_) continue;
        seen_[next] = searches_;
        stack.push_back(next);
      }
    }
    return us;
  }

  const IterationPlan& plan_;
  std::vector<int> seen_;  // by group: the last search that came here
  int searches_ = 0;
  std::vector<int> collectives_;
};

/// The orders of a list schedule by `places`, smallest first.
void ReorderBy(IterationPlan& plan, const std::vector<int>& places) {
  TaskGraph tasks = TimesOf(plan);
  for (int t = 0; t < tasks.size(); ++t)
    tasks.tasks[t].priority = -static_cast<double>(places[GroupOfTask(plan, t)]);
  for (Lane& lane : tasks.lanes) lane.order.clear();
  const absl::StatusOr<Timeline> timeline =
      Simulate(tasks, {.contention = plan.graph().contention()});
  CC_CHECK(timeline.ok());
  std::array<std::vector<int>, 2> orders;
  for (int t : timeline->order) orders[tasks.tasks[t].lane].push_back(GroupOfTask(plan, t));
  for (int lane : {0, 1}) plan.Reorder(lane, std::move(orders[lane]));
}

/// By group: the last position on lane 1 of a collective that comes before it; -1: none does.
std::vector<int> LastCollectivesBefore(const IterationPlan& plan) {
  const absl::StatusOr<Timeline> timeline =
      Simulate(TimesOf(plan), {.contention = plan.graph().contention()});
  CC_CHECK(timeline.ok());
  std::vector<int> last;
  for (int t : timeline->order)
    last.resize(std::max<size_t>(last.size(), GroupOfTask(plan, t) + 1), -1);
  for (int t : timeline->order) {
    const int group = GroupOfTask(plan, t);
    for (int before : plan.After(group)) {
      const IterationPlan::Group& g = plan.group(before);
      last[group] = std::max({last[group], last[before], g.is_collective ? g.position : -1});
    }
  }
  return last;
}

/// By position on lane 1: when all that the collective takes of lane 0 is there, not before those
/// in front of it.
std::vector<double> ReadyTimes(const IterationPlan& plan) {
  std::vector<double> ready;
  for (int group : plan.order(1)) {
    double us = ready.empty() ? 0 : ready.back();
    for (int before : plan.After(group)) {
      if (plan.group(before).lane == 0) us = std::max(us, plan.IntervalOf(before).end);
    }
    ready.push_back(us);
  }
  return ready;
}

/// The best buckets of successive collectives of lane 1. The last bucket of the first j collectives
/// begins at [j].
std::vector<size_t> BucketsOf(const IterationPlan& plan) {
  const PlanGraph& graph = plan.graph();
  const std::vector<int>& order = plan.order(1);
  const std::vector<double> ready = ReadyTimes(plan);
  const std::vector<int> last_before = LastCollectivesBefore(plan);
  // By number of collectives: when they are done, and the work; of equal ends the least work.
  using Done = std::pair<double, double>;
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<Done> best(order.size() + 1, {kNever, kNever});
  std::vector<size_t> begins(order.size() + 1);
  best[0] = {0, 0};
  for (size_t i = 0; i < order.size(); ++i) {
    const int first = plan.group(order[i]).items[0];
    Work work = graph.WorkOfCollective(first);
    work.bytes = work.tensors = 0;
    for (size_t j = i; j < order.size(); ++j) {
      const std::vector<int>& items = plan.group(order[j]).items;
      const bool waits = j > i && last_before[order[j]] >= static_cast<int>(i);
      if (waits || graph.bucket(items[0]) != graph.bucket(first)) break;
      for (int item : items) {
        work.bytes += graph.WorkOfCollective(item).bytes;
        work.tensors += graph.WorkOfCollective(item).tensors;
      }
      const double us = graph.model().Us(work);
      const Done done = {std::max(best[i].first, ready[j]) + us, best[i].second + us};
      if (done >= best[j + 1]) continue;
      best[j + 1] = done;
      begins[j + 1] = i;
    }
  }
  return begins;
}

}  // namespace

IterationPlan FirstPlan(const PlanGraph& graph,
                        absl::FunctionRef<bool(const IterationPlan& plan, double us)> visit) {
  constexpr int kMostRounds = 3;
  IterationPlan plan = FusedPlan(graph);
  double before = plan.Accept();
  if (!visit(plan, before)) return plan;
  for (int round = 0; round < kMostRounds; ++round) {
    if (!visit(plan, OrderForGradients(plan))) return plan;
    const double us = MakeBuckets(plan);
    if (!visit(plan, us) || us >= before) break;
    before = us;
  }
  visit(plan, OrderForGradients(plan));
  return plan;
}

IterationPlan FusedPlan(const PlanGraph& graph) {
  std::vector<std::vector<int>> kernels;
  for (const std::vector<NodeId>& nodes : ComputeGroups(graph.schedule())) {
    std::vector<int> items;
    for (NodeId id : nodes) {
      const int item = graph.item_of(id);
      if (item >= 0 && graph.Joins(item)) items.push_back(item);
    }
    kernels.push_back(std::move(items));
  }
  IterationPlan plan(graph, kernels);
  Savings(plan).FuseWhileItSaves();
  kernels.clear();
  for (int group : plan.order(0)) kernels.push_back(plan.group(group).items);
  return IterationPlan(graph, kernels);  // with orders that fit the kernels
}

double OrderForGradients(IterationPlan& plan) {
  double best = plan.Accept();
  for (FirstOf first : {FirstOf::kReady, FirstOf::kReadyAndWanted}) {
    // By the work before collectives, then by the order that results.
    for (int round = 0; round < 2; ++round) {
      ReorderBy(plan, CollectiveOrder(plan, first).Places());
      const double us = plan.Us();
      if (us >= best) {
        plan.Undo();
        break;
      }
      best = plan.Accept();
    }
  }
  return best;
}

double MakeBuckets(IterationPlan& plan) {
  const double before_us = plan.Accept();
  const std::vector<int> order = plan.order(1);
  std::vector<int> first_items;
  for (int group : order) first_items.push_back(plan.group(group).items[0]);
  const std::vector<size_t> begins = BucketsOf(plan);
  for (size_t end = order.size(); end > 0; end = begins[end]) {
    for (size_t j = begins[end] + 1; j < end; ++j)
      plan.Merge(plan.group_of(first_items[j - 1]), plan.group_of(first_items[j]));
  }
  if (plan.Us() < before_us) return plan.Accept();
  plan.Undo();
  return before_us;
}

}  // namespace coconet
