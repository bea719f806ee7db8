#ifndef COCONET_BENCH_GPU_COPY_H_
#define COCONET_BENCH_GPU_COPY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/gpu_adam.h"
#include "bench/row.h"

namespace coconet::bench {

/// Copies by the driver, within the first GPU. Unavailable without a GPU.
absl::StatusOr<Copies> CopiesOnGpu();
/// Copies by one core.
absl::StatusOr<Copies> CopiesOnHost();

/// A stream of the first GPU for one rank alone: ranks that shared a stream would run their steps
/// one after the other, and each step waits for those of all ranks.
class GpuStream {
 public:
  static absl::StatusOr<std::unique_ptr<GpuStream>> Make();
  ~GpuStream();
  GpuStream(const GpuStream&) = delete;
  GpuStream& operator=(const GpuStream&) = delete;
  void* get() const { return stream_; }

 private:
  explicit GpuStream(void* stream) : stream_(stream) {}
  void* stream_;
};

/// What a number depends on: "gpu", "arch", "multiprocessors", "memory_bytes", "l2_bytes", and the
/// versions of "driver" and "nvrtc".
void AddGpu(Row& row);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_GPU_COPY_H_
