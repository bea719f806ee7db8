#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

/// Whether an instruction sends data between devices. If a collective is split in two halves, only
/// its first half counts.
bool IsCollective(absl::string_view opcode);

/// What the header of a module says: replicas, and the partitions of each. Device d is partition
/// d % partitions of replica d / partitions.
struct HloHeader {
  std::optional<int64_t> replicas, partitions;
};
absl::StatusOr<HloHeader> HeaderOf(const HloModule& module);

/// The number of ranks that a module is written for.
struct HloDevices {
  int64_t ranks = 1;  // 0: the module leaves it open
  /// It works on any number of ranks as well, having neither collectives nor numbers of devices.
  bool is_for_any = false;
};

/// Takes the ranks from the header, or the mesh that JAX gives a module before it is partitioned,
/// or the groups, pairs and shapes of its collectives. If these leave them open, since the number
/// of replicas was an option of the compiler, takes the `world`'s (0: not known). InvalidArgument
/// if the module contradicts itself or a known world.
absl::StatusOr<HloDevices> DevicesOf(const HloModule& module, int64_t world);

}  // namespace coconet
