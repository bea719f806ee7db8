#ifndef COCONET_BENCH_COMPARE_H_
#define COCONET_BENCH_COMPARE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/session/session.h"
#include "bench/finding.h"
#include "bench/rounds.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// Which contenders run.
struct Sides {
  bool ours = false;
  bool flat = false;      // ours over one tensor of as many elements, by the same schedule
  bool baseline = false;  // needs MPI
  std::string form = {};  // of the baseline, by name; empty: all
  bool limit = false;     // from kLimitFrom elements on
};

/// With fewer elements caches and waiting bound a step, not the memory.
inline constexpr int64_t kLimitFrom = int64_t{1} << 20;

/// Collective. Times all sides of one cell in the same rounds, after a check that ours and the
/// baseline's forms compute the same. The findings of ours come with facts: "variant", "threads" of
/// a rank, "tuned" (here, or from the cache), and "flat variant". Over a list of tensors the
/// baseline uses the gradients and weights of ours, when both take part: nobody has so much memory
/// twice.
absl::StatusOr<std::vector<Finding>> Compare(Rank& rank, const SessionOptions& options,
                                             const Cell& cell, const Sides& sides,
                                             const RoundTerms& terms);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_COMPARE_H_
