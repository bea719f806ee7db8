#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"
#include "runtime/simt_options.h"

namespace coconet {

/// Runs `body` on threads of this process. Each is a rank with a simulated GPU: the CUDA
/// backend over a driver that runs kernels of the simt dialect thread for thread, in the
/// interleaving that the options choose, and reports their mistakes. The first mistake ends the
/// world: all ranks' steps return DataLoss with the kernel, source line, rank, block, thread and
/// buffer. Unavailable in a build without CUDA's headers.
///
/// While a rank's thread computes, the devices stand still for `patience_s` seconds, then go on
/// without it: a rank that is late by more changes the interleaving.
absl::Status RunSimtWorld(const WorldRequest& request, const SimtOptions& options,
                          const RankBody& body, double patience_s = 0.1);

/// Marks bytes of the calling rank's simulated GPU as uninitialised: to read them before they are
/// written is a mistake. Does nothing for other memory, and on other backends.
void ForgetSimtMemory(const void* address, int64_t bytes);
/// DataLoss if one of the bytes is still uninitialised, which ends the world like a mistake of a
/// kernel.
absl::Status CheckSimtWritten(const void* address, int64_t bytes);
/// Time of the simulated GPUs in nanoseconds: equal for equal interleavings of equal work. 0 on
/// other backends.
int64_t SimtTimeNs();

}  // namespace coconet
