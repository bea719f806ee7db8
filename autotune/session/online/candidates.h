#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/measure/tensors.h"
#include "autotune/session/load/loading.h"
#include "autotune/store/record.h"
#include "jit/lower/lower.h"
#include "runtime/rank.h"

namespace coconet {

/// A variant that a job may run instead of the incumbent: verified here, loaded, and with all
/// tensors where the incumbent has them.
struct Candidate {
  VariantResult result;    // with its time in the preparation
  double expected_us = 0;  // as Exploration::incumbent_us
  Trust trust;
  std::shared_ptr<const Lowered> lowered;
  std::unique_ptr<Module> module;
  std::vector<PlacedTensor> tensors;
};

/// What a job explores.
struct Exploration {
  TuningRecord record;                  // as the tuning cache has it; `best` is the incumbent
  std::vector<VariantResult> variants;  // on rank 0: all results under its key
  std::vector<VariantResult> prepared;  // those of this job's preparation
  double incumbent_us = 0;              // in the preparation
  std::vector<Candidate> candidates;
};

/// The most variants that are prepared, and that are explored, in one job.
inline constexpr int kMostPrepared = 24, kMostExplored = 8;

/// Collective. Prepares what a job explores, within the budget: compiles the most promising
/// variants and verifies each as a tuning does, times it in turns with `start`, and keeps in the
/// tuning cache what that showed. If one is faster than `start` by more than 5 % in each turn, it
/// becomes `start`. Null, with a line or a warning that says why, if there is nothing to explore.
absl::StatusOr<std::shared_ptr<const Exploration>> PrepareExploration(const Loading& loading,
                                                                      Winner& start);

/// Replaces the result of the same variant, or adds it.
void PutResult(const VariantResult& result, std::vector<VariantResult>& results);

}  // namespace coconet
