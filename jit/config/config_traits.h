#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"

namespace coconet {

/// The traits of a schedule on which its configs depend.
struct ConfigTraits {
  bool unfused_collective = false;  // that a library or a kernel can do
  bool only_exchanges = true;       // these are AllToAlls
  bool unfused_over_all = false,
       unfused_in_node = false;  // of these, over all ranks, and within nodes
  bool fused_over_all = false;
  bool by_node = false, across = false;  // some are not over all ranks, or are across nodes
  bool library_possible = true;          // unfused slices are contiguous
  bool over_all_possible = true;         // those of collectives over all ranks
  bool chunk_flags = false;              // a kernel computes on what it gathered or exchanged
  bool fused_all_reduce = false, unfused_all_reduce = false;
  bool sends = false, fused_sends = false;
  bool fused_slices = false, unfused_slices = false;  // reduced to, or gathered from
  bool unfused_gathers = false;
  bool folds_and_uses =
      false;  // a kernel of each tensor of a list folds it and goes on with the result
  bool buckets_over_all = false, buckets_in_node = false;
  int64_t all_reduce_bytes = 0;   // of the largest
  int64_t all_reduces_bytes = 0;  // of all that are in no kernel
  int64_t bytes = 0;
  int64_t elements = 0;
  int widest = 1, narrowest = 8;  // bytes of the element types in memory
};

/// The traits of a bound schedule for stages of `ranks` ranks; of a program over a list, those of
/// all its tensors together.
ConfigTraits TraitsOf(const Schedule& s, int ranks);

/// Whether Config::batch has an effect: a kernel folds each tensor of a list and reads it again,
/// and sums nothing over tensors.
bool WorksInBatches(const Schedule& s);

/// Whether Config::remote_first has an effect: a kernel computes the operand of its AllToAll.
bool Exchanges(const Schedule& s);

/// Whether Config::gemm has an effect: matrix products are left to a library.
bool Multiplies(const Schedule& s);

/// Whether Config::concurrent has an effect on the ranks of `nodes` nodes: a library does a
/// collective that is in no overlap, and some computation of this step or the next one neither
/// waits for it nor feeds it.
bool HasConcurrency(const Schedule& s, Protocol protocol, int nodes);

/// Why a schedule's collectives cannot be done so on the ranks of `space`; "" if they can.
absl::string_view WhyNot(Protocol protocol, const ConfigTraits& t, const ConfigSpace& space);

/// Why the schedule does not admit a config whose numbers are in their ranges; "" if it does.
std::string WhyNot(const Config& config, const Schedule& s, const ConfigSpace& space);

}  // namespace coconet
