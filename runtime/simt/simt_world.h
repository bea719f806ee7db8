#ifndef COCONET_RUNTIME_SIMT_SIMT_WORLD_H_
#define COCONET_RUNTIME_SIMT_SIMT_WORLD_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"
#include "runtime/simt_options.h"

namespace coconet {

/// Runs `body` on `ranks` threads of this process, each a rank with a simulated GPU: the CUDA
/// backend over a driver that runs kernels of the simt dialect thread for thread, in an
/// interleaving of the options', and reports their mistakes. What a kernel does wrong ends the
/// world: every rank's steps then return it, DataLoss, with the kernel, source line, rank, block,
/// thread and buffer. Unavailable in a build without CUDA's headers.
absl::Status RunSimtWorld(int ranks, const WorldShape& shape, double timeout_s, bool pin,
                          const SimtOptions& options,
                          const std::function<absl::Status(Rank&)>& body);

/// Says that what those bytes of the calling rank's simulated GPU hold counts for nothing: reading
/// them before somebody writes them is a mistake. Of other memory, and on other backends, nothing
/// happens.
void ForgetSimtMemory(const void* address, int64_t bytes);
/// DataLoss where nobody has written one of those bytes since, which ends the world like a kernel's
/// mistake.
absl::Status CheckSimtWritten(const void* address, int64_t bytes);
/// The time of the simulated GPUs, which passes with what they do: by it two runs are seen to be
/// the same interleaving. 0 on other backends.
int64_t SimtTimeNs();

}  // namespace coconet

#endif  // COCONET_RUNTIME_SIMT_SIMT_WORLD_H_
