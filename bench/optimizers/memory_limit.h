#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/baselines/array.h"
#include "bench/baselines/kernels.h"
#include "bench/harness/rounds.h"
#include "bench/optimizers/cell.h"

namespace coconet::bench {

/// The time of the loads and stores of one rank's share of a fused step: as many streams and bytes,
/// in this rank's own memory, without waits and with next to no arithmetic. Run on all ranks at
/// once, it shows the limit of the machine's memory. LAMB goes twice over its states and weights,
/// because a tensor's norms are known only after the first pass; caching between the passes is not
/// modelled. Many tensors count as one of as many elements.
class MemoryLimit {
 public:
  /// InvalidArgument for a number of ranks without a kernel, and for LAMB of a dtype other than
  /// f32.
  static absl::StatusOr<std::unique_ptr<MemoryLimit>> Make(const Cell& cell, int ranks);

  /// The kernels with plain and with streaming stores; the limit is the fastest. Valid as long as
  /// this object lives.
  std::vector<Contender> contenders() const;

 private:
  LimitStreams streams_;
  int64_t elements_ = 0;  // per stream, of which `present_` are in memory
  int64_t present_ = 0;
  std::vector<Array> arrays_;
};

/// Bytes that a fused step loads and stores on one rank.
int64_t StepBytes(const Cell& cell, int ranks);

}  // namespace coconet::bench
