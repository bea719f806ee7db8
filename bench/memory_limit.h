#ifndef COCONET_BENCH_MEMORY_LIMIT_H_
#define COCONET_BENCH_MEMORY_LIMIT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/array.h"
#include "bench/cell.h"
#include "bench/kernels.h"
#include "bench/rounds.h"

namespace coconet::bench {

/// The time that one rank's share of a fused step needs for its loads and stores alone: as many
/// streams and bytes, in memory of this rank, with no waiting for others and next to no arithmetic.
/// Run on all ranks at once it is what the machine's memory can do. LAMB goes twice over its states
/// and weights, since a tensor's norms are known only after the first pass; what a cache keeps of
/// them until then is ignored. Many tensors count as one with as many elements.
class MemoryLimit {
 public:
  /// InvalidArgument for a number of ranks that has no kernel, and for LAMB of another dtype than
  /// f32.
  static absl::StatusOr<std::unique_ptr<MemoryLimit>> Make(const Cell& cell, int ranks);

  /// The kernel with plain stores, and those with streaming ones; the limit is the fastest. They
  /// live as long as this object.
  std::vector<Contender> contenders() const;

 private:
  LimitStreams streams_;
  int64_t elements_ = 0;  // of a stream, of which so many are in memory:
  int64_t present_ = 0;
  std::vector<Array> arrays_;
};

/// Reads and writes of a fused step: of one rank, in bytes.
int64_t StepBytes(const Cell& cell, int ranks);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_MEMORY_LIMIT_H_
