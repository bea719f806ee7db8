#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

/// The groups of ranks that a collective works in. Every rank is in one group; all groups are of
/// equal size.
struct HloGroups {
  int64_t ranks = 1;                         // 0: any number, in one group
  std::vector<std::vector<int64_t>> groups;  // each in the order of its results

  /// The ranks of one group; 0: all ranks, however many.
  int64_t size() const { return static_cast<int64_t>(groups[0].size()); }
  /// One group of all ranks, in their order.
  bool IsWorld() const;
};

/// The groups of an all-reduce, all-gather, reduce-scatter, all-to-all or collective-broadcast.
/// Which devices replica_groups count depends on channel_id and use_global_device_ids; see
/// "CollectiveOpGroupMode" in https://openxla.org/xla/operation_semantics. `ranks` is 0 if the
/// module leaves the number open: then only an all-reduce of all ranks has groups, and others are
/// InvalidArgument. Unimplemented for groups of different sizes.
absl::StatusOr<HloGroups> RankGroupsOf(const HloModule& module, const HloInstruction& instruction,
                                       int64_t ranks);

/// The pairs of ranks of a collective-permute: its source_target_pairs count partitions of each
/// replica, or replicas of each partition.
absl::StatusOr<std::vector<std::pair<int64_t, int64_t>>> RankPairsOf(
    const HloModule& module, const HloInstruction& instruction, int64_t ranks);

}  // namespace coconet
