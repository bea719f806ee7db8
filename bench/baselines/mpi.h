#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "coconet/base/dtype.h"

namespace coconet::bench {

/// Plain MPI, as a program without Coconet calls it. For processes that an MPI launcher started,
/// after MPI_Init.

/// Sums over all processes in place: f32, and f16 and bf16, which MPI lacks, by vectorised
/// operators of ours that round each sum once. InvalidArgument if MPI's counts cannot hold
/// `elements`.
absl::Status MpiAllReduce(DType dtype, void* data, int64_t elements);

/// Sends `sent[r]` elements to each process r, those for 0 first, and receives `received[r]` of it.
/// InvalidArgument if MPI's counts cannot hold an offset.
absl::Status MpiAllToAll(const float* data, absl::Span<const int64_t> sent, float* arriving,
                         absl::Span<const int64_t> received);

/// "Open MPI 4.1.4"; "" in a build without MPI.
std::string MpiVersion();

}  // namespace coconet::bench
