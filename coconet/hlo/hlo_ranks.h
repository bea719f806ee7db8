#pragma once

#include "coconet/hlo/hlo_arrays.h"
#include "coconet/hlo/hlo_groups.h"

namespace coconet {

/// Collectives of arrays in groups of ranks. Those over the world are collectives of the program;
/// in smaller groups a rank takes what it needs of an AllGather over all ranks. Arrays are numbers,
/// no bools.
class HloRanks {
 public:
  HloRanks(HloArrays& arrays, const HloGroups& groups) : arrays_(arrays), groups_(groups) {}

  HloValue Reduced(ReduceKind kind, const HloValue& a);
  /// [group, a...]: those of all ranks of the group.
  HloValue Gathered(const HloValue& a);
  /// Of a [group, r...]: [r...], of which a rank has the one with its place in the group.
  HloValue ReducedAndScattered(ReduceKind kind, const HloValue& a);
  /// Of a [group, r...]: [group, r...], which has what each rank of the group had for this one.
  HloValue Exchanged(const HloValue& a);
  /// What rank from[r] has, on rank r; zeros where that is -1.
  HloValue Sent(const HloValue& a, absl::Span<const Number> from);

 private:
  /// Row `rank` of the world's.
  HloValue ByRank(const HloValue& of_ranks);
  /// This rank's place in its group, and the ranks of that.
  HloValue Place();
  HloValue Members();
  /// The value of each rank as its part of [ranks, a...], sliced over these.
  Tensor AsParts(const HloValue& a);
  /// [ranks, a...], of all ranks.
  HloValue OfWorld(const HloValue& a);
  HloValue Row(const HloValue& a, const HloValue& row, int dim);

  HloArrays& arrays_;
  const HloGroups& groups_;
};

}  // namespace coconet
