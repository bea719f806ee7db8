#pragma once

#include "coconet/hlo/hlo_arrays.h"
#include "coconet/hlo/hlo_groups.h"

namespace coconet {

/// Collectives of arrays in groups of ranks. Collectives over the world are the program's; in
/// smaller groups a rank takes what it needs of an AllGather over all ranks. Arrays are of numbers,
/// not bools.
class HloRanks {
 public:
  HloRanks(HloArrays& arrays, const HloGroups& groups) : arrays_(arrays), groups_(groups) {}

  HloValue Reduced(ReduceKind kind, const HloValue& a);
  /// [group, a...]: the arrays of all ranks of the group.
  HloValue Gathered(const HloValue& a);
  /// Reduces [group, r...] over the group; each rank gets the row with its place in the group.
  HloValue ReducedAndScattered(ReduceKind kind, const HloValue& a);
  /// Exchanges the rows of [group, r...]: row i of the result is what rank i of the group had for
  /// this rank.
  HloValue Exchanged(const HloValue& a);
  /// The array of rank from[r], on rank r; zeros if that is -1.
  HloValue Sent(const HloValue& a, absl::Span<const Number> from);

 private:
  /// The row of [ranks, a...] with this rank's number.
  HloValue ByRank(const HloValue& of_ranks);
  /// This rank's place in its group, and the ranks of its group.
  HloValue Place();
  HloValue Members();
  /// [ranks, a...], sliced over the ranks: each rank's array is its part.
  Tensor AsParts(const HloValue& a);
  /// [ranks, a...]: the arrays of all ranks.
  HloValue OfWorld(const HloValue& a);
  HloValue Row(const HloValue& a, const HloValue& row, int dim);

  HloArrays& arrays_;
  const HloGroups& groups_;
};

}  // namespace coconet
