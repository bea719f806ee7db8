#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autotune/runner/binaries.h"
#include "autotune/runner/rank_runner.h"
#include "autotune/search/strategy.h"
#include "autotune/search/tuner.h"
#include "autotune/search/variant_runner.h"
#include "autotune/search/variants.h"
#include "coconet/ir/graph.h"
#include "jit/config/config.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// A program's variants, all timed to the end in the same rounds, in which all ran one after the
/// other.
struct Recording {
  std::vector<Entrant> entrants;
  int baseline = 0;
  std::vector<std::vector<VariantRunner::Sample>> rounds;  // by variant, as many for each; empty:
                                                           // the variant failed
  std::vector<double> level_us;  // by variant: its median, as if all rounds had been alike
  double measuring_s = 0;        // of all samples
};

/// The variants of a bound program on the ranks of a world, at most `most`, which a seed draws.
absl::StatusOr<VariantSet> VariantsOf(const Graph& program, const ConfigSpace& space, int most);

/// A runner with what it compiles by.
struct Run {
  std::unique_ptr<Binaries> binaries;
  std::unique_ptr<RankRunner> runner;
};
absl::StatusOr<Run> MakeRunner(Rank& rank, const Graph& program, const VariantSet& set,
                               uint64_t seed);

/// What a search picked and what its samples took.
struct Pick {
  int variant = -1;
  double measuring_s = 0;
  int tried = 0;
};

/// Collective. Searches exhaustively on the real ranks. On rank 0, `recording` is filled.
absl::Status Record(Rank& rank, const Graph& program, const VariantSet& set, double budget_s,
                    Recording& recording);
/// Collective. Searches on the real ranks, without a tuning cache. The kernels may be compiled.
absl::StatusOr<Pick> SearchLive(Rank& rank, const Graph& program, const VariantSet& set,
                                SearchKind kind, uint64_t seed, double budget_s);
/// Searches with recorded samples: two successive ones are of one round, which the seed draws.
absl::StatusOr<Pick> Replay(const Recording& recording, SearchKind kind, uint64_t seed);

}  // namespace coconet::bench
