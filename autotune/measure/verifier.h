#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/measure/plain_results.h"
#include "autotune/measure/reference.h"
#include "autotune/measure/result_kernels.h"
#include "autotune/measure/tensors.h"
#include "autotune/store/record.h"
#include "runtime/rank.h"

namespace coconet {

/// Why a variant is not dispatched; the same on all ranks.
struct Failure {
  Verdict verdict{};
  std::string reason;
};

/// The verdict on a variant that could not be bound or loaded, or whose step ended with this error.
Verdict VerdictOn(const absl::Status& error);

/// A plan bound to memory of one rank, ready to run.
struct Instance {
  const Plan* plan = nullptr;
  std::vector<PlacedTensor> tensors;
  std::vector<Memory*> buffers;  // by buffer of the plan; null for sync buffers
  /// Owners of what `buffers` points to; empty if the caller owns all of it.
  std::vector<std::shared_ptr<Memory>> memory = {};
  std::unique_ptr<BoundPlan> bound;  // destroyed before it
  /// Digests, by buffer, of long tensors that are only read, before the step of VerifyStep, if
  /// kernels computed them.
  std::map<int, uint64_t> digests = {};
};

// All functions below check that results are within the interpreter's bounds, that replicas are
// equal on all ranks (to the bit, except the bits of NaNs), that tensors that are only read have
// not changed, and that nothing was written in the padding of tensors that only kernels write, nor
// in kGuardBytes (arena.h) behind each buffer whose memory is so long. An error means that the
// ranks lost contact, or (DataLoss) that a kernel failed and its GPU runs nothing more, or
// (Cancelled) that the reference was told to stop. All are collective.

/// Writes the data of a first step: the reference's in inputs and states, NaNs in outputs,
/// temporaries, padding and guards.
absl::Status PrepareStep(Rank& rank, Instance& instance, const Reference& reference);

/// Runs one step, or a part of one, which all ranks begin together. Checks nothing.
absl::StatusOr<std::optional<Failure>> RunTogether(Rank& rank, BoundPlan& plan);

/// Runs one step on the reference's data, with NaNs in outputs, temporaries, padding and guards.
/// Checks all results; long results also against `plain`. With `kernels`, on all ranks or none,
/// long tensors are checked in the GPU's memory, and only samples and differences are copied.
absl::StatusOr<std::optional<Failure>> VerifyStep(Rank& rank, Instance& instance,
                                                  Reference& reference, PlainResults& plain,
                                                  ResultKernels* kernels = nullptr);

/// Runs a second step after VerifyStep, without checking values.
absl::StatusOr<std::optional<Failure>> VerifyRepeat(Rank& rank, Instance& instance,
                                                    const Reference& reference,
                                                    ResultKernels* kernels = nullptr);

/// Runs a step on the data of each reference in turn, each at least once, back to back: as soon as
/// a rank has done its step it takes its results away, changes its inputs and states, and begins
/// the next. One rank is late in each step: it begins late, or pauses in the middle of a kernel,
/// when its peers have begun. Checks the results of each step. If steps of the plan outlast their
/// runs, then runs some as BoundPlan::Advance does, which must leave the bits that Run does.
absl::StatusOr<std::optional<Failure>> VerifySteps(Rank& rank, Instance& instance,
                                                   absl::Span<Reference> references);

}  // namespace coconet
