#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/node/plan_layout.h"
#include "runtime/rank.h"

namespace coconet {

/// The synchronization memory of one bound plan: its flags, its counters and its Control. Backends
/// derive from it, and add what they also reuse from plan to plan.
struct SyncSet {
  virtual ~SyncSet() = default;
  /// Memory for the symmetric sync buffers, and for the others. The first bytes, as many as
  /// `layout` needs, are zeros when a plan is bound to the set.
  std::unique_ptr<Memory> shared = nullptr, local = nullptr;
  SyncLayout layout = {};  // of the plan that is bound to the set
  bool symmetric = false;  // peers reach `shared`
  bool is_new = true;      // no plan was bound to the set before
  /// Whether another plan may use the set. False if its plan has failed, since kernels may then
  /// still run on some rank.
  bool reusable = true;
  int64_t number = 0;  // equal on all ranks
};

/// BoundPlan::CheckSyncGuards for a plan that is bound to this set.
absl::Status CheckSyncGuards(const Plan& plan, const SyncSet& sync);

/// The sets of a rank that no plan uses now. If a plan that needed as much was bound and destroyed
/// before, binding another one allocates nothing, and ranks exchange no handles of memory. A set is
/// free once its plan is destroyed on this rank, and is used again only if it is free on all ranks:
/// then no rank runs a kernel that could still write to a peer's flags. Used by the rank's thread
/// only, as plans are.
class SyncPool {
 public:
  /// Collective. Makes a set with memory of at least a layout's bytes.
  using Makes = std::function<absl::StatusOr<std::unique_ptr<SyncSet>>(const SyncLayout& bytes)>;

  SyncPool();
  ~SyncPool();
  SyncPool(const SyncPool&) = delete;
  SyncPool& operator=(const SyncPool&) = delete;

  /// Collective. Returns a set for a plan of this layout, a free one of all ranks or else a new
  /// one, which goes back when its last owner drops it. The caller fills what `layout` needs with
  /// zeros unless the set is new, and then agrees with all ranks before any of them runs the plan.
  absl::StatusOr<std::shared_ptr<SyncSet>> Take(Exchange& exchange, const SyncLayout& layout,
                                                bool symmetric, const Makes& make);
  /// Frees the memory of all free sets.
  void Clear();

 private:
  struct Free;
  /// The numbers of the sets that are free here and large enough.
  std::vector<int64_t> Fitting(const SyncLayout& layout, bool symmetric) const;

  std::shared_ptr<Free> free_;
  int64_t next_ = 0;  // the number of the next new set, as far as this rank knows
};

}  // namespace coconet
