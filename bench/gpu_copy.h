#ifndef COCONET_BENCH_GPU_COPY_H_
#define COCONET_BENCH_GPU_COPY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/gpu_adam.h"
#include "bench/row.h"

namespace coconet::bench {

/// By the driver, within the first GPU. Unavailable where there is none.
absl::StatusOr<Copies> CopiesOnGpu();
/// By one core.
absl::StatusOr<Copies> CopiesOnHost();

/// A stream of the first GPU, of one rank: in one that several share their steps would come one
/// after the other, each waiting for the next.
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
