#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

/// The groups of ranks that a collective works in. Every rank is in one of them; all have as many.
struct HloGroups {
  int64_t ranks = 1;
  std::vector<std::vector<int64_t>> groups;  // each in the order of its results

  int64_t size() const { return static_cast<int64_t>(groups[0].size()); }
  /// One group of all ranks, in their order.
  bool IsWorld() const;
};

/// Of an all-reduce, all-gather, reduce-scatter, all-to-all or collective-broadcast. Which devices
/// replica_groups count depends on channel_id and use_global_device_ids; see
/// "CollectiveOpGroupMode" in https://openxla.org/xla/operation_semantics. Unimplemented where a
/// module has both several replicas and several partitions, and groups of different sizes.
absl::StatusOr<HloGroups> RankGroupsOf(const HloModule& module, const HloInstruction& instruction,
                                       int64_t ranks);

}  // namespace coconet
