#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/plan_memory.h"
#include "runtime/rank.h"

namespace coconet {

/// The bytes of a buffer's elements, padding included, on the rank that has most.
inline int64_t BytesOf(const Buffer& buffer) {
  return buffer.elements * static_cast<int64_t>(SizeOf(buffer.dtype));
}
/// The same on this rank.
inline int64_t BytesOn(const Rank& rank, const Buffer& buffer) {
  return buffer.On(rank.stage_rank()) * static_cast<int64_t>(SizeOf(buffer.dtype));
}

/// Bytes behind each buffer of an Arena that no step may write, which the verifier checks.
inline constexpr int64_t kGuardBytes = 4096;

struct MemoryNeed {
  int64_t bytes = 0;
  bool symmetric = false;
  std::vector<int64_t> on_rank = {};  // bytes by rank of a stage; empty: `bytes` on each

  /// The bytes on that rank; all ranks have as much symmetric memory.
  int64_t On(int stage_rank) const {
    return symmetric || on_rank.empty() ? bytes : on_rank[stage_rank];
  }
  bool operator==(const MemoryNeed&) const = default;
};
MemoryNeed NeedOf(const Buffer& buffer);
/// Grows `need` until it suffices for `more`, too.
void GrowNeed(MemoryNeed& need, const MemoryNeed& more);

/// Collective; the ranks pass equal needs. Returns memory for each need, cut from one allocation of
/// local and one of symmetric memory, since an allocation is slow whatever its size.
/// ResourceExhausted on all ranks when one rank lacks memory.
absl::StatusOr<std::vector<std::shared_ptr<Memory>>> AllocateTogether(
    Rank& rank, absl::Span<const MemoryNeed> needs);

/// The areas of a plan's temporaries (PlaceTemporaries), the one that peers reach second.
std::array<MemoryNeed, 2> AreasOf(const Plan& plan);
/// By buffer of the plan: a temporary's part of `areas`; null for others.
std::vector<std::shared_ptr<Memory>> TemporariesIn(
    const Rank& rank, const Plan& plan, const std::array<std::shared_ptr<Memory>, 2>& areas);

/// How temporaries are placed.
enum class Temporaries : uint8_t {
  kShared,  // as in a job: temporaries that do not live at the same time may overlap
  kApart,   // none overlap, and each has a guard behind it
};

/// Memory that all variants of one program share while they are tuned, so that trying a variant
/// allocates nothing. A tensor has the same memory in every variant, so that it holds ordinary
/// numbers whichever variant wrote it last (NaNs and denormals would slow down arithmetic).
class Arena {
 public:
  /// A tensor's name, or an area of temporaries.
  using Needs = std::map<std::string, MemoryNeed>;
  /// Grows `needs` until they suffice for the plan with its temporaries placed so, or for `more`,
  /// too.
  static void Include(const Plan& plan, Temporaries temporaries, Needs& needs);
  static void Include(const Needs& more, Needs& needs);
  /// The bytes on the rank that needs most.
  static int64_t BytesOf(const Needs& needs);

  /// Collective; the ranks pass equal needs. ResourceExhausted, on all ranks, when it does not fit.
  static absl::StatusOr<Arena> Create(Rank& rank, const Needs& needs);
  /// Collective; the ranks pass equal seeds. Gives each need other memory, zero-filled, at places
  /// that the seed draws from a larger allocation; for hosts. Before the ranks meet again, no step
  /// may run in it. ResourceExhausted, on all ranks and with nothing changed, if that does not fit.
  absl::Status Move(Rank& rank, uint64_t seed);
  /// Whether the arena suffices for the needs.
  bool Suffices(const Needs& needs) const;
  /// Collective; the ranks pass equal needs. Grows the arena until it suffices for these, too:
  /// memory that is too short is allocated anew, zero-filled; memory that was placed stays with its
  /// owners. Returns whether a tensor's memory was replaced. ResourceExhausted, on all ranks and
  /// with nothing changed, if it does not fit.
  absl::StatusOr<bool> Grow(Rank& rank, const Needs& needs);
  /// The needs that the arena suffices for.
  const Needs& needs() const { return needs_; }

  /// Returns memory for each buffer of a plan that the needs include; null for sync buffers, which
  /// Rank::Bind places. Each has kGuardBytes behind it, except shared temporaries.
  std::vector<std::shared_ptr<Memory>> Place(const Rank& rank, const Plan& plan,
                                             Temporaries temporaries) const;

 private:
  /// Collective. Allocates memory for each of them anew.
  absl::Status Allocate(Rank& rank, const Needs& needs);

  Needs needs_;
  std::map<std::string, std::shared_ptr<Memory>> memory_;
  std::shared_ptr<Memory> rooms_[2];  // of Move: local, symmetric; null before
};

/// The pointers that Rank::Bind takes.
std::vector<Memory*> Pointers(const std::vector<std::shared_ptr<Memory>>& memory);

}  // namespace coconet
