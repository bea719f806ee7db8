#pragma once

#include <cstdint>

#include "coconet/schedule/schedule.h"

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

}  // namespace coconet
