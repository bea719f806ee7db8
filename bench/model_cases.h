#ifndef COCONET_BENCH_MODEL_CASES_H_
#define COCONET_BENCH_MODEL_CASES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autotune/session/session.h"
#include "bench/finding.h"
#include "bench/launch.h"
#include "bench/rounds.h"
#include "coconet/ir/types.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// What a worker measures of model and pipeline parallelism.
struct ModelCase {
  enum class Kind : uint8_t {
    kEpilogue,  // a product, its sum over ranks and an epilogue, beside oneDNN and MPI
    kAcross,    // the same across nodes: with overlap, without, and computation and communication
                // alone
    kPipeline,  // the boundary of two stages: overlapped, as written, by slices
  };
  Kind kind{};
  DType dtype = DType::kF32;
  Sizes sizes;           // of the workload's symbols
  double seconds = 5;    // of the rounds
  double budget_s = 20;  // of tuning one contender
};

/// Collective. Findings of sides: of kEpilogue "ours", "baseline", "product" (oneDNN alone), both
/// also "_packed" (weights rearranged once, before), "rest" (loads and stores of what else must
/// move); of kAcross "overlapped", "sequential", "computation", "communication", and facts "cores"
/// of the last; of kPipeline "overlapped", "sequential" (AR; C; send), "slices" (RS; C; send; AG).
/// Facts "variant" by side.
absl::StatusOr<std::vector<Finding>> MeasureModelCase(Rank& rank, const ModelCase& c);

/// As arguments of a worker, and back, from this program's flags. nullopt: a user started it.
std::vector<std::string> Arguments(const ModelCase& c);
absl::StatusOr<std::optional<ModelCase>> ModelCaseFromFlags();
/// What a worker does; it writes what it found where RunWorker told it.
absl::Status WorkOn(const ModelCase& c);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_MODEL_CASES_H_
