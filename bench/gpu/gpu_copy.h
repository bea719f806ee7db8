#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/harness/row.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// Copies `bytes` between two places of this rank's memory; done when it returns.
using Copies = std::function<absl::Status(const void* from, int64_t bytes, void* to)>;
/// Copies by the driver, within one GPU. Unavailable where there is none.
absl::StatusOr<Copies> CopiesOnGpu(int ordinal = 0);
/// Copies by one core.
absl::StatusOr<Copies> CopiesOnHost();

/// This rank's part of a copy by all ranks together.
class CopyContender {
 public:
  /// `bytes`: of all ranks.
  static absl::StatusOr<std::unique_ptr<CopyContender>> Make(Rank& rank, int64_t bytes,
                                                             Copies copy);
  absl::Status Run(int64_t steps);

 private:
  int64_t bytes_ = 0;
  Copies copy_;
  std::unique_ptr<Memory> from_, to_;
};

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
