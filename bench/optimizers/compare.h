#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/session/session.h"
#include "bench/harness/finding.h"
#include "bench/harness/rounds.h"
#include "bench/optimizers/cell.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// The contenders.
struct Sides {
  bool ours = false;
  bool flat = false;      // ours over one tensor of as many elements, by the same schedule
  bool baseline = false;  // needs MPI
  std::string form = {};  // of the baseline, by name; "": all
  bool limit = false;     // the memory limit, from kLimitFrom elements on
};

/// With fewer elements a step is bound by caches and waiting, not by memory.
inline constexpr int64_t kLimitFrom = int64_t{1} << 20;

/// Collective. Times all sides of one cell in the same rounds, after a check that ours and the
/// baseline's forms compute the same. Facts: "variant" of "ours" and of "flat"; of ours also
/// "threads" of all ranks, and "tuned" (here, or from the cache). If ours and the baseline take
/// part over a list of tensors, the baseline uses the gradients and weights of ours, because memory
/// would not suffice twice.
absl::StatusOr<std::vector<Finding>> Compare(Rank& rank, const SessionOptions& options,
                                             const Cell& cell, const Sides& sides,
                                             const RoundTerms& terms);

/// In a world of 1: the overhead of a call of Run. Two findings of ours: "BoundPlan::Run" of a
/// kernel that does nothing, and "BoundProgram::Run" of a program over one element, with facts
/// "allocations" and "locks" per thousand calls.
absl::StatusOr<std::vector<Finding>> MeasureDispatch(Rank& rank, const SessionOptions& options,
                                                     const RoundTerms& terms);

}  // namespace coconet::bench
