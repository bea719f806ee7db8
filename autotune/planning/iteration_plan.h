#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "autotune/planning/plan_graph.h"
#include "autotune/simulation/two_lanes.h"

namespace coconet {

/// A plan of an iteration: a partition of the items into groups (kernels; buckets of collectives,
/// done by one call), a lane per bucket, and an order per lane. Lane 0 computes; lane 1
/// communicates beside it, as the lanes of runtime/plan.h.
///
/// Edits check that groups stay legal, and keep the order of lane 0 topological; if they cannot,
/// they return false and change nothing. Orders of lanes may still make groups wait for each other
/// for ever: then the time is infinite. Edits since the last Accept can be taken back.
class IterationPlan {
 public:
  struct Group {
    std::vector<int> items;  // in no order
    double us = 0;
    int lane = 0, position = 0;
    bool is_collective = false;
    bool waits = false;  // comes after a collective
  };

  /// Makes kernels of these items, and puts the others alone; collectives are on lane 1. A kernel
  /// that would be illegal, or would wait for itself, is left out.
  explicit IterationPlan(const PlanGraph& graph, const std::vector<std::vector<int>>& kernels = {});

  const PlanGraph& graph() const { return *graph_; }
  const Group& group(int group) const { return groups_[group]; }
  int group_of(int item) const { return group_of_[item]; }
  /// Groups by position.
  const std::vector<int>& order(int lane) const { return order_[lane]; }
  /// Groups that a group comes after: dependencies between items, not orders. Sorted, each once.
  std::vector<int> After(int group) const;
  std::vector<int> Before(int group) const;

  /// Merges two kernels, or two buckets of a lane. A bucket takes the place of the later of the
  /// two; groups of lane 0 that the kernel must follow go before it, those that must follow it,
  /// behind.
  bool Merge(int a, int b);
  /// Takes some items, not all, out of their group, into a new one that stands before the rest, or
  /// behind it if it depends on it.
  bool Detach(int group, std::vector<int> items);
  /// Moves a group within its lane; `position` counts without the group.
  bool Move(int group, int position);
  /// Moves a bucket to the other lane, behind the last group that it must follow there.
  bool SetLane(int bucket, int lane);
  /// Replaces the order of a lane by another of the same groups.
  void Reorder(int lane, std::vector<int> order);

  /// The simulated time with the edits since the last Accept.
  double Us();
  /// The times of all groups added up, as of the last Us, and as of the last Accept.
  double tried_work() const { return tried_work_; }
  double work() const { return work_; }
  /// Keeps the edits; returns the time.
  double Accept();
  /// Takes back the edits since the last Accept.
  void Undo();
  /// When a group runs, as of the last Accept.
  Timeline::Interval IntervalOf(int group) const {
    return lanes_.Of(groups_[group].lane, groups_[group].position);
  }
  /// Groups each of which begins when the one before it ends, to the end of the iteration, as of
  /// the last Accept.
  std::vector<int> CriticalGroups() const;

 private:
  struct Edit {
    int lane = -1;  // -1: of a group
    int from = 0, count = 0;
    std::vector<int> order;  // what stood where `count` groups stand now
    int group = -1;
    Group before;
  };

  int NewGroup();
  /// Keeps what the group was, for Undo.
  void Touch(int group);
  void SetItems(int group, std::vector<int> items);
  /// Replaces order_[lane][from, from + count).
  void Replace(int lane, int from, int count, std::vector<int> by);
  void Renumber(int lane, int from);
  void MarkChanged(int lane, int from, int to);
  bool MergeKernels(int first, int second);
  bool MergeBuckets(int first, int second);
  TwoLanes::Step StepOf(int group, bool& waits_for_later) const;
  /// False if a group stands before one of its lane that it depends on.
  bool FillSteps(TwoLanes::Lanes& steps) const;
  void ForgetChanges();
  /// Fills in the order of groups; returns groups that wait for each other.
  std::vector<int> Sort();

  const PlanGraph* graph_;
  std::vector<Group> groups_;
  std::vector<int> free_;  // groups without items
  std::vector<int> group_of_;
  std::array<std::vector<int>, 2> order_;
  std::vector<Edit> edits_;
  TwoLanes lanes_;
  TwoLanes::Lanes steps_, tried_;  // as of the last Accept, of Us
  TwoLanes::Change change_;
  double work_ = 0, tried_work_ = 0;
};

}  // namespace coconet
