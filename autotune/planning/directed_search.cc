#include "autotune/planning/directed_search.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "autotune/planning/first_plan.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

class Directed {
 public:
  Directed(const PlanGraph& graph, PlanRecord& record)
      : graph_(graph), record_(record), random_(record.options().seed), plan_(graph) {
    for (int item = 0; item < graph.size(); ++item) {
      const size_t alike = graph.alike(item);
      if (alike_.size() <= alike) alike_.resize(alike + 1);
      alike_[alike].push_back(item);
    }
  }

  void Run() {
    Construct();
    critical_ = plan_.CriticalGroups();
    for (int failed = 0; failed < kMostFailed && record_.GoOn();) {
      if (!Change()) {
        plan_.Undo();
        ++failed;
        continue;
      }
      failed = 0;
      record_.Count();
      Judge();
      if (++since_best_ >= kPatience) StartAgain();
    }
    record_.Keep(plan_, us_);
  }

 private:
  /// Moves in a row that do not apply after which there seems to be none.
  static constexpr int kMostFailed = 1 << 16;
  /// Evaluations without a better plan after which the search goes back to the best.
  static constexpr int kPatience = 3000;
  /// How much worse than the best a plan may be that is accepted.
  static constexpr double kSlack = 1e-3;
  /// A plan must be that much better than the best to be kept, which copies it.
  static constexpr double kGain = 1e-6;
  static constexpr double kRounding = 1e-12;

  void Construct() {
    Keep(plan_, plan_.Accept());
    plan_ = FirstPlan(graph_, [&](const IterationPlan& plan, double us) {
      Keep(plan, us);
      return record_.GoOn();
    });
    us_ = plan_.Accept();
  }
  void Keep(const IterationPlan& plan, double us) {
    record_.Count();
    record_.Keep(plan, us);
  }

  void Judge() {
    const double us = plan_.Us();
    const double best = record_.best_us();
    // More work must gain, but for once in a while: else the plan fills with small kernels where
    // they cost no time.
    const bool is_more = plan_.tried_work() > plan_.work() * (1 + kRounding);
    const bool must_gain = must_gain_ || (is_more && !Chance(0.02));
    if (!(us <= (must_gain ? us_ * (1 - kGain) : best * (1 + kSlack)))) {
      plan_.Undo();
      return;
    }
    const bool differs = us != us_;
    us_ = plan_.Accept();
    if (us_ < best * (1 - kGain)) {
      since_best_ = 0;
      record_.Keep(plan_, us_);
    }
    if (differs) critical_ = plan_.CriticalGroups();
  }

  void StartAgain() {
    since_best_ = 0;
    plan_ = record_.best();
    us_ = plan_.Accept();
    critical_ = plan_.CriticalGroups();
  }

  int Below(size_t n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool Chance(double p) { return static_cast<double>(random_() >> 11) * 0x1p-53 < p; }

  /// Chooses a group, mostly of the critical path; -1: none of the kind.
  int Choose(bool collective) {
    for (int tries = 0; tries < 8; ++tries) {
      int group = -1;
      if (Chance(0.7) && !critical_.empty()) {
        group = critical_[Below(critical_.size())];
      } else {
        const std::vector<int>& order = plan_.order(collective && Chance(0.95) ? 1 : 0);
        if (order.empty()) continue;
        group = order[Below(order.size())];
      }
      if (!plan_.group(group).items.empty() && plan_.group(group).is_collective == collective)
        return group;
    }
    return -1;
  }

  /// Edits the plan somewhere. False where that was not possible.
  bool Change() {
    const int kind = Below(100);
    must_gain_ = kind >= 98;  // a lane is not changed for nothing
    if (kind < 22) return FuseNeighbours();
    if (kind < 34) return DetachPart();
    if (kind < 50) return MoveKernel();
    if (kind < 62) return JoinBuckets();
    if (kind < 74) return CutBucket();
    if (kind < 86) return ShiftCollective();
    if (kind < 98) return MoveBucket();
    return ChangeLane();
  }

  bool FuseNeighbours() {
    const int group = Choose(/*collective=*/false);
    if (group < 0) return false;
    const std::vector<int>& items = plan_.group(group).items;
    const int item = items[Below(items.size())];
    const bool takes = Chance(0.5);
    const std::vector<int>& others = takes ? graph_[item].after : graph_.before(item);
    if (others.empty()) return false;
    const int other = others[Below(others.size())];
    if (plan_.group_of(other) == group || graph_.IsCollective(other)) return false;
    if (!plan_.Merge(plan_.group_of(item), plan_.group_of(other))) return false;
    if (Chance(0.5)) return true;
    for (int alike : alike_[graph_.alike(item)]) {
      for (int next : takes ? graph_[alike].after : graph_.before(alike)) {
        if (graph_.alike(next) != graph_.alike(other)) continue;
        if (plan_.group_of(next) != plan_.group_of(alike))
          plan_.Merge(plan_.group_of(alike), plan_.group_of(next));
      }
    }
    return true;
  }

  /// Takes a begin, an end, or one item out of a kernel.
  bool DetachPart() {
    const int group = Choose(/*collective=*/false);
    if (group < 0 || plan_.group(group).items.size() < 2) return false;
    std::vector<int> items = plan_.group(group).items;
    absl::c_sort(items);
    const size_t cut = 1 + Below(items.size() - 1);
    const int way = Below(3);
    if (way == 0)
      items.resize(cut);
    else if (way == 1)
      items.erase(items.begin(), items.begin() + cut);
    else
      items = {items[cut]};
    if (!plan_.Detach(group, items)) return false;
    if (Chance(0.5)) return true;
    std::vector<int> kinds;
    for (int item : items) kinds.push_back(graph_.alike(item));
    absl::c_sort(kinds);
    const size_t parts = items.size();
    for (int alike : alike_[graph_.alike(items[0])]) {
      const int other = plan_.group_of(alike);
      std::vector<int> part;
      for (int item : plan_.group(other).items) {
        if (absl::c_binary_search(kinds, graph_.alike(item))) part.push_back(item);
      }
      if (part.size() == parts) plan_.Detach(other, part);
    }
    return true;
  }

  /// To another position between what it comes after and what comes after it.
  bool MoveKernel() {
    const int group = Choose(/*collective=*/false);
    if (group < 0) return false;
    const int lane = plan_.group(group).lane, at = plan_.group(group).position;
    int first = 0, last = static_cast<int>(plan_.order(lane).size()) - 1;
    for (int before : plan_.After(group)) {
      if (plan_.group(before).lane == lane)
        first = std::max(first, plan_.group(before).position + 1);
    }
    for (int after : plan_.Before(group)) {
      if (plan_.group(after).lane == lane) last = std::min(last, plan_.group(after).position - 1);
    }
    if (first >= last) return false;
    // Near positions as often as far ones.
    const int span = Chance(0.5) ? 8 : last - first;
    first = std::max(first, at - span);
    last = std::min(last, at + span);
    return plan_.Move(group, first + Below(last - first + 1));
  }

  /// A bucket of lane 1; -1: there is none.
  int ChooseBucket() {
    const int bucket = Choose(/*collective=*/true);
    return bucket >= 0 && plan_.group(bucket).lane == 1 ? bucket : -1;
  }
  /// The one after it, or before it; -1: none.
  int NeighbourOf(int bucket) {
    const std::vector<int>& order = plan_.order(1);
    const int next = plan_.group(bucket).position + (Chance(0.5) ? 1 : -1);
    return next >= 0 && next < static_cast<int>(order.size()) ? order[next] : -1;
  }

  bool JoinBuckets() {
    const int bucket = ChooseBucket();
    const int other = bucket < 0 ? -1 : NeighbourOf(bucket);
    return other >= 0 && plan_.Merge(bucket, other);
  }

  /// The collectives of a bucket by when what they take is computed.
  std::vector<int> ByReadiness(int bucket) const {
    std::vector<std::pair<int, int>> ready;
    for (int item : plan_.group(bucket).items) {
      int last = 0;
      for (int before : graph_[item].after) {
        const IterationPlan::Group& group = plan_.group(plan_.group_of(before));
        if (group.lane == 0) last = std::max(last, group.position);
      }
      ready.emplace_back(last, item);
    }
    absl::c_sort(ready);
    std::vector<int> items;
    for (const auto& [position, item] : ready) items.push_back(item);
    return items;
  }

  bool CutBucket() {
    const int bucket = ChooseBucket();
    if (bucket < 0 || plan_.group(bucket).items.size() < 2) return false;
    std::vector<int> items = ByReadiness(bucket);
    items.resize(1 + Below(items.size() - 1));
    return plan_.Detach(bucket, std::move(items));
  }

  /// Gives the first or the last collectives of a bucket to the bucket in front or behind.
  bool ShiftCollective() {
    const int bucket = ChooseBucket();
    const int other = bucket < 0 ? -1 : NeighbourOf(bucket);
    if (other < 0 || plan_.group(bucket).items.size() < 2) return false;
    std::vector<int> items = ByReadiness(bucket);
    if (plan_.group(other).position > plan_.group(bucket).position) absl::c_reverse(items);
    items.resize(std::min<size_t>(1 + Below(4), items.size() - 1));
    const int item = items[0], of_other = plan_.group(other).items[0];
    return plan_.Detach(bucket, std::move(items)) &&
           plan_.Merge(plan_.group_of(item), plan_.group_of(of_other));
  }

  bool MoveBucket() {
    const int bucket = ChooseBucket();
    if (bucket < 0) return false;
    const int by = (1 + Below(6)) * (Chance(0.5) ? 1 : -1);
    return plan_.Move(bucket, plan_.group(bucket).position + by);
  }

  bool ChangeLane() {
    const int bucket = Choose(/*collective=*/true);
    return bucket >= 0 && plan_.SetLane(bucket, 1 - plan_.group(bucket).lane);
  }

  const PlanGraph& graph_;
  PlanRecord& record_;
  std::mt19937_64 random_;
  IterationPlan plan_;
  double us_ = 0;  // of plan_, as accepted
  int since_best_ = 0;
  bool must_gain_ = false;               // of the change at hand
  std::vector<int> critical_;            // as of the last plan with another time
  std::vector<std::vector<int>> alike_;  // items by PlanGraph::alike
};

}  // namespace

void SearchDirected(const PlanGraph& graph, PlanRecord& record) { Directed(graph, record).Run(); }

}  // namespace coconet
