#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace coconet::bench {

/// Plain MPI, as a program without Coconet calls it. For processes that an MPI launcher started,
/// after MPI_Init.

/// Sums over all processes in place. InvalidArgument if MPI's counts cannot hold `elements`.
absl::Status MpiAllReduce(float* data, int64_t elements);
/// The same for f16, which MPI lacks: by a vectorised operator of ours that rounds each sum once.
absl::Status MpiAllReduceHalf(uint16_t* data, int64_t elements);

/// The same for bf16.
absl::Status MpiAllReduceBf16(uint16_t* data, int64_t elements);

/// "Open MPI 4.1.4"; "" in a build without MPI.
std::string MpiVersion();

}  // namespace coconet::bench
