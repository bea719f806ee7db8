#ifndef COCONET_AUTOTUNE_MEASURE_ARENA_H_
#define COCONET_AUTOTUNE_MEASURE_ARENA_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/rank.h"

namespace coconet {

struct MemoryNeed {
  int64_t bytes = 0;
  bool symmetric = false;
};

/// Collective; the ranks pass equal needs. Memory for each of them, cut from one allocation of each
/// kind, since asking for memory costs much more than its size. On every rank or on none:
/// ResourceExhausted of one rank is every rank's.
absl::StatusOr<std::vector<std::shared_ptr<Memory>>> AllocateTogether(
    Rank& rank, absl::Span<const MemoryNeed> needs);

/// Memory that all variants of one program share while they are tuned, so that trying one costs no
/// allocation. A tensor has the same place in every variant, and so keeps numbers that make sense,
/// whichever variant wrote them last (a NaN or a denormal where none belongs would cost time);
/// temporaries share places by size.
class Arena {
 public:
  /// A tensor by its name; the i-th largest temporary as its kind and i.
  using Slot = std::pair<std::string, int>;
  using Needs = std::map<Slot, MemoryNeed>;
  /// What `needs` and the plan, or what both, can share.
  static void Include(const Plan& plan, Needs& needs);
  static void Include(const Needs& more, Needs& needs);
  static int64_t BytesOf(const Needs& needs);

  /// Collective; the ranks pass equal needs. ResourceExhausted, on all ranks, when it does not fit.
  static absl::StatusOr<Arena> Create(Rank& rank, const Needs& needs);

  /// Memory for each buffer of a plan that the needs include; null for sync buffers, which a
  /// binding makes itself.
  std::vector<Memory*> Place(const Plan& plan) const;

 private:
  static std::vector<Slot> SlotsOf(const Plan& plan);

  std::map<Slot, std::shared_ptr<Memory>> memory_;
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_MEASURE_ARENA_H_
