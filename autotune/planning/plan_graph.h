#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/cost/cost_model.h"
#include "autotune/simulation/simulate.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/target.h"

namespace coconet {

/// The launches of a bound schedule without kernels, here called items: what groups of them cost,
/// and which groups are legal. Answers are kept by canonical group: operations, types and operands,
/// but no names and numbers, so that repeated layers are asked once. Not thread-safe.
class PlanGraph {
 public:
  /// InvalidArgument if the schedule has kernels or overlaps: plans make these. `model` must
  /// outlive the graph. Time: near linear in the number of operations.
  static absl::StatusOr<PlanGraph> Of(Schedule schedule, const Target& target,
                                      const CostModel& model);

  const Schedule& schedule() const { return schedule_; }
  const CostModel& model() const { return *model_; }
  const Target& target() const { return target_; }
  /// The model's; collectives share one link.
  Contention contention() const {
    return {model_->ComputationBesideCollective(), model_->CollectiveBesideComputation(), 2};
  }
  int size() const { return schedule_.launches().size(); }
  const Launch& operator[](int item) const { return schedule_.launches()[item]; }
  /// The items that come after it.
  const std::vector<int>& before(int item) const { return before_[item]; }
  /// The item's structural equivalence class: items of repeated layers that do the same share it.
  int alike(int item) const { return alike_[item]; }
  /// The same for collectives that one library call can do (Bucket).
  int bucket(int item) const { return bucket_[item]; }
  int item_of(NodeId id) const { return schedule_.launches().of[id]; }
  bool IsCollective(int item) const { return collective_[item]; }
  /// Whether kernels can contain the item; else a library does it alone, a product or a collective.
  bool Joins(int item) const { return joins_[item]; }
  /// Whether the item comes after a collective.
  bool waits(int item) const { return waits_[item]; }

  /// The nodes of items, ascending.
  std::vector<NodeId> NodesOf(absl::Span<const int> items) const;
  /// Microseconds of items as one launch: one, a kernel, or collectives of one bucket.
  double UsOf(absl::Span<const int> items) const;
  /// The work of a collective; bytes and tensors of a bucket are the sums of its collectives'.
  const Work& WorkOfCollective(int item) const { return works_[item]; }
  /// Whether a kernel can contain the items: CheckFuse, and not more than kMostInKernel nodes.
  bool Fits(absl::Span<const int> items) const;
  /// Distinct canonical groups asked about so far.
  size_t distinct_groups() const { return facts_.size(); }

  /// The most nodes of a kernel: larger ones would save less than a hundredth (fuse_moves.cc).
  static constexpr size_t kMostInKernel = 128;

 private:
  struct Facts {
    double us = -1;  // not asked yet
    int fits = -1;   // not asked yet
  };
  PlanGraph(Schedule schedule, const Target& target, const CostModel& model)
      : schedule_(std::move(schedule)), target_(target), model_(&model) {}

  void FindClasses();
  void FindItems();
  void FindAlike();
  /// The canonical text of a group, as numbers.
  const std::vector<int>& KeyOf(const std::vector<NodeId>& nodes) const;
  Facts& FactsOf(const std::vector<NodeId>& nodes) const { return facts_[KeyOf(nodes)]; }

  Schedule schedule_;
  Target target_;
  const CostModel* model_;
  std::vector<int> classes_;              // by node: operation, without names, and type
  std::vector<std::vector<int>> before_;  // this and the rest by item
  std::vector<int> alike_, bucket_;
  std::vector<bool> collective_, joins_, waits_;
  std::vector<Work> works_;  // of collectives
  mutable absl::flat_hash_map<std::vector<int>, Facts> facts_;
  mutable std::vector<int> key_, place_, stamp_;  // of KeyOf; the last two by node
  mutable int asked_ = 0;
};

}  // namespace coconet
