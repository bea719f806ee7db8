#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "bench/gpu_adam.h"
#include "bench/row.h"

namespace coconet::bench {

/// Copies by the driver, within the first GPU. Unavailable where there is none.
absl::StatusOr<Copies> CopiesOnGpu();
/// Copies by one core.
absl::StatusOr<Copies> CopiesOnHost();

/// A stream of the first GPU, for one rank only: in a stream shared by ranks each step would wait
/// for the next rank's.
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

/// Adds what GPU times depend on: "gpu", "arch", "multiprocessors", "memory_bytes", "l2_bytes", and
/// the versions "driver" and "nvrtc".
void AddGpu(Row& row);

}  // namespace coconet::bench
