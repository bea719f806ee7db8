#ifndef COCONET_AUTOTUNE_MEASURE_VERIFIER_H_
#define COCONET_AUTOTUNE_MEASURE_VERIFIER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/measure/reference.h"
#include "autotune/measure/tensors.h"
#include "autotune/store/record.h"
#include "runtime/rank.h"

namespace coconet {

/// Why a variant is not dispatched: a value, the same on all ranks.
struct Failure {
  Verdict verdict{};
  std::string reason;
};

/// A plan on memory, ready to run, as one rank sees it.
struct Instance {
  const Plan* plan = nullptr;
  std::vector<PlacedTensor> tensors;
  std::vector<Memory*> buffers;  // by buffer of the plan; null for sync buffers
  std::unique_ptr<BoundPlan> bound;
};

/// Collective. Runs one step on the reference's data and compares: outputs, temporaries and padding
/// hold NaNs before, results are within the interpreter's bounds, replicas are equal to the bit on
/// all ranks. An error: the ranks lost each other, or a kernel failed and its GPU runs nothing more
/// (DataLoss).
absl::StatusOr<std::optional<Failure>> VerifyStep(Rank& rank, Instance& instance,
                                                  Reference& reference);

/// Collective. After VerifyStep: one step more, from where the first one ended; replicas must still
/// be equal, and what is only read must be as it was.
absl::StatusOr<std::optional<Failure>> VerifyRepeat(Rank& rank, Instance& instance,
                                                    const Reference& reference);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_MEASURE_VERIFIER_H_
