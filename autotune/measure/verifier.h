#pragma once

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

/// Why a variant is not dispatched; the same on all ranks.
struct Failure {
  Verdict verdict{};
  std::string reason;
};

/// A plan bound to memory of one rank, ready to run.
struct Instance {
  const Plan* plan = nullptr;
  std::vector<PlacedTensor> tensors;
  std::vector<Memory*> buffers;  // by buffer of the plan; null for sync buffers
  std::unique_ptr<BoundPlan> bound;
};

/// Collective. Runs one step on the reference's data, with NaNs in outputs, temporaries, padding
/// and kGuardBytes (arena.h) behind each buffer whose memory is so long. Checks that results are
/// within the interpreter's bounds, that replicas are equal to the bit on all ranks, and that
/// nothing was written behind a buffer. An error means that the ranks lost contact, or (DataLoss)
/// that a kernel failed and its GPU runs nothing more.
absl::StatusOr<std::optional<Failure>> VerifyStep(Rank& rank, Instance& instance,
                                                  Reference& reference);

/// Collective. Runs a second step after VerifyStep and checks that replicas are still equal, that
/// tensors which are only read have not changed, and again what is behind the buffers.
absl::StatusOr<std::optional<Failure>> VerifyRepeat(Rank& rank, Instance& instance,
                                                    const Reference& reference);

}  // namespace coconet
