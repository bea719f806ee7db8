#ifndef COCONET_BENCH_GPU_COPY_H_
#define COCONET_BENCH_GPU_COPY_H_

#include "absl/status/statusor.h"
#include "bench/gpu_adam.h"
#include "bench/row.h"

namespace coconet::bench {

/// By the driver, within the first GPU. Unavailable where there is none.
absl::StatusOr<Copies> CopiesOnGpu();
/// By one core.
absl::StatusOr<Copies> CopiesOnHost();

/// What a number depends on: "gpu", "arch", "multiprocessors", "memory_bytes", "l2_bytes", and the versions of "driver" and "nvrtc".
void AddGpu(Row& row);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_GPU_COPY_H_
