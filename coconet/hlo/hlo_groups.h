#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

/// The groups of ranks that a collective works in. Every rank is in one of them; all have as many.
struct HloGroups {
  int64_t ranks = 1;                         // 0: any number, in one group
  std::vector<std::vector<int64_t>> groups;  // each in the order of its results

  /// 0: as many as there are.
  int64_t size() const { return static_cast<int64_t>(groups[0].size()); }
  /// One group of all ranks, in their order.
  bool IsWorld() const;
};

/// Of an all-reduce, all-gather, reduce-scatter, all-to-all or collective-broadcast. Which devices
/// replica_groups count depends on channel_id and use_global_device_ids; see
/// "CollectiveOpGroupMode" in https://openxla.org/xla/operation_semantics. `ranks` are 0 where the
/// module leaves them open: then only an all-reduce of all has groups, and others are
/// InvalidArgument. Unimplemented for groups of different sizes.
absl::StatusOr<HloGroups> RankGroupsOf(const HloModule& module, const HloInstruction& instruction,
                                       int64_t ranks);

/// Of a collective-permute, pairs of ranks: its source_target_pairs count partitions of each
/// replica, or replicas of each partition.
absl::StatusOr<std::vector<std::pair<int64_t, int64_t>>> RankPairsOf(
    const HloModule& module, const HloInstruction& instruction, int64_t ranks);

}  // namespace coconet
