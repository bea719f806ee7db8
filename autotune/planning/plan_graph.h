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

/// A launch of a schedule without kernels: plans combine them to kernels and buckets.
struct PlanItem {
  enum class Kind : uint8_t {
    kJoins,       // work that kernels can contain
    kAlone,       // a launch of its own: a product by a library
    kCollective,  // by a library
  };
  Kind kind{};
  std::vector<NodeId> nodes;       // ascending
  std::vector<int> after, before;  // items that it comes after, and those that come after it
  int alike = 0;                   // structural equivalence class: repeated layers share it
  int bucket = 0;      // collectives only: the class that one library call can do (Bucket)
  bool waits = false;  // comes after a collective
};

/// The items of a bound schedule, the costs of groups of them, and which groups are legal. Answers
/// are kept by canonical group: operations, types and operands, but no names and numbers, so that
/// repeated layers are asked once. Not thread-safe.
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
  int size() const { return static_cast<int>(items_.size()); }
  const PlanItem& operator[](int item) const { return items_[item]; }
  int item_of(NodeId id) const { return schedule_.launches().of[id]; }
  bool IsCollective(int item) const { return items_[item].kind == PlanItem::Kind::kCollective; }

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
  std::vector<PlanItem> items_;
  std::vector<int> classes_;  // by node: operation, without names, and type
  std::vector<Work> works_;   // by item, of collectives
  mutable absl::flat_hash_map<std::vector<int>, Facts> facts_;
  mutable std::vector<int> key_, place_, stamp_;  // of KeyOf; the last two by node
  mutable int asked_ = 0;
};

}  // namespace coconet
