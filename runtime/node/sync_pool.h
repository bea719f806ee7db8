#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/node/plan_layout.h"
#include "runtime/rank.h"

namespace coconet {

/// What one bound plan writes beside its caller's buffers: its flags, its counters and its Control.
/// Backends derive from it what else they keep for a plan.
struct SyncSet {
  virtual ~SyncSet() = default;
  /// Zero-filled, as far as `layout` goes, before the plan has it.
  std::unique_ptr<Memory> shared = nullptr, local = nullptr;
  SyncLayout layout = {};  // of the plan that has it
  bool symmetric = false;  // peers reach `shared`
  bool is_new = true;      // no plan had it before
  /// The plan that has it has failed, so that kernels of it may still run on some rank; or nobody
  /// may use the memory again for another reason.
  bool is_spoilt = false;
  int64_t number = 0;  // equal on all ranks
};

/// BoundPlan::CheckSyncGuards of a plan that has this set.
absl::Status CheckSyncGuards(const Plan& plan, const SyncSet& sync);

/// The sets of a rank's plans, which one plan after the other uses: binding a plan allocates
/// nothing, and ranks pass no handles of memory, where a plan was bound and destroyed before that
/// needed as much. A set belongs to a plan until its rank destroys the plan, and another plan gets
/// it only when it is free on all ranks: none of them runs a kernel of the plan before that could
/// write to a peer's flags. Used by the rank's thread only, as plans are.
class SyncPool {
 public:
  /// Collective. Makes the set's memory and what belongs to it, of the bytes of a layout.
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
  /// Frees what no plan has.
  void Clear();

 private:
  struct Free;
  /// Sets that are free here, and suffice, by their numbers.
  std::vector<int64_t> Fitting(const SyncLayout& layout, bool symmetric) const;

  std::shared_ptr<Free> free_;
  int64_t next_ = 0;  // the number of the next new set, as far as this rank knows
};

}  // namespace coconet
