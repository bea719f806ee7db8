#include "autotune/planning/backtracking.h"

#include <array>
#include <limits>
#include <memory>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "autotune/planning/plan_tasks.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// A plan as what it is made of.
struct Partition {
  std::vector<std::vector<int>> kernels, buckets;  // of several items
};

Partition PartitionOf(const IterationPlan& plan) {
  Partition partition;
  for (int lane : {0, 1}) {
    for (int group : plan.order(lane)) {
      const IterationPlan::Group& g = plan.group(group);
      if (g.items.size() > 1)
        (g.is_collective ? partition.buckets : partition.kernels).push_back(g.items);
    }
  }
  return partition;
}

class Backtracking {
 public:
  Backtracking(const PlanGraph& graph, PlanRecord& record)
      : graph_(graph), record_(record), random_(record.options().seed) {}

  void Run() {
    IterationPlan plain(graph_);
    double best = Cost(plain);
    record_.Keep(plain, best);
    Push(best, plain);
    int unchanged = 0;
    while (!queue_.empty() && unchanged < record_.options().patience && record_.GoOn()) {
      const std::shared_ptr<const Partition> partition = queue_.top().partition;
      queue_.pop();
      const IterationPlan from = Rebuilt(*partition);
      for (Method method : {&Backtracking::FuseKernels, &Backtracking::FuseCollectives}) {
        if (!record_.GoOn()) return;
        IterationPlan plan = from;
        const int moves = Below(record_.options().beta + 1);
        for (int i = 0; i < moves; ++i) (this->*method)(plan);
        const double us = Cost(plan);
        if (us < best) {
          best = us;
          unchanged = 0;
          record_.Keep(plan, us);
        } else {
          ++unchanged;
        }
        if (us <= record_.options().alpha * best) Push(us, plan);
      }
    }
  }

 private:
  using Method = void (Backtracking::*)(IterationPlan&);
  struct Entry {
    double us = 0;
    int64_t number = 0;  // of equal times the first comes first
    std::shared_ptr<const Partition> partition;
    bool operator<(const Entry& other) const {
      return std::pair(us, number) > std::pair(other.us, other.number);
    }
  };

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  void Push(double us, const IterationPlan& plan) {
    queue_.push({us, pushed_++, std::make_shared<const Partition>(PartitionOf(plan))});
  }

  IterationPlan Rebuilt(const Partition& partition) const {
    IterationPlan plan(graph_, partition.kernels);
    for (const std::vector<int>& bucket : partition.buckets) {
      for (size_t i = 1; i < bucket.size(); ++i)
        CC_CHECK(plan.Merge(plan.group_of(bucket[0]), plan.group_of(bucket[i])));
    }
    return plan;
  }

  /// Gives the plan the orders of FIFO queues; returns its time, infinity where buckets wait for
  /// themselves.
  double Cost(IterationPlan& plan) {
    record_.Count();
    TaskGraph tasks = TimesOf(plan);
    for (Lane& lane : tasks.lanes) lane = {.name = lane.name, .fifo = true};
    const absl::StatusOr<Timeline> timeline = Simulate(tasks, {.contention = graph_.contention()});
    if (!timeline.ok()) return std::numeric_limits<double>::infinity();
    std::array<std::vector<int>, 2> orders;
    for (int t : timeline->order) orders[tasks.tasks[t].lane].push_back(GroupOfTask(plan, t));
    for (int lane : {0, 1}) plan.Reorder(lane, std::move(orders[lane]));
    return plan.Accept();
  }

  /// A random kernel joins one of those that it takes from.
  void FuseKernels(IterationPlan& plan) {
    const std::vector<int>& order = plan.order(0);
    const int group = order[Below(static_cast<int>(order.size()))];
    std::vector<int> from;
    for (int before : plan.After(group)) {
      if (!plan.group(before).is_collective) from.push_back(before);
    }
    if (!from.empty()) plan.Merge(from[Below(static_cast<int>(from.size()))], group);
  }

  /// A random collective joins the next.
  void FuseCollectives(IterationPlan& plan) {
    const std::vector<int>& order = plan.order(1);
    if (order.size() < 2) return;
    const int at = Below(static_cast<int>(order.size()) - 1);
    plan.Merge(order[at], order[at + 1]);
  }

  const PlanGraph& graph_;
  PlanRecord& record_;
  std::mt19937_64 random_;
  std::priority_queue<Entry> queue_;
  int64_t pushed_ = 0;
};

}  // namespace

void SearchBacktracking(const PlanGraph& graph, PlanRecord& record) {
  Backtracking(graph, record).Run();
}

}  // namespace coconet
