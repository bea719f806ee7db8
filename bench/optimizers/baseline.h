#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/harness/rounds.h"
#include "bench/optimizers/cell.h"

namespace coconet::bench {

struct BaselineForm;
struct BaselineMemory;

/// Gradients and weights of each tensor, f32, that another object owns. After Begin gradients are
/// only read.
struct StepTensors {
  std::vector<void*> gradients, weights;
};

/// A step of a data-parallel optimizer as a careful user writes it today with MPI; one object per
/// process. Over one tensor: MPI_Allreduce of the gradient in place, then one vectorised loop over
/// the whole tensor. Because the reduction is in place, the gradient grows from step to step after
/// Begin until it overflows. That costs no time; denormals would, but there are none. Over many
/// tensors: copies the gradients into one flat array, sums it in place, and, tensor by tensor,
/// updates flat moments and scattered weights in vectorised loops that read the flat array, so that
/// nothing is copied back.
class Baseline {
 public:
  Baseline(const BaselineForm& form, std::shared_ptr<const BaselineMemory> memory, int ranks);

  std::string form() const;  // in words
  /// Sets gradients and weights to those of FillGradient and FillWeights, moments to zero.
  void Begin(int rank);
  absl::Status Run();
  /// The weights of each tensor.
  const std::vector<void*>& weights() const;

 private:
  void UpdateLamb(size_t tensor);

  const BaselineForm& form_;
  const std::shared_ptr<const BaselineMemory> memory_;
  const int ranks_;
  int64_t step_ = 0;
};

/// The baselines of a cell, one per form, the fastest of which counts; only the one called `form`,
/// unless that is empty. Over a list of tensors all forms use the same memory, with gradients and
/// weights from `shared`, unless that is null. Empty for a cell without a baseline; InvalidArgument
/// when there is no such form.
absl::StatusOr<std::vector<std::unique_ptr<Baseline>>> MakeBaselines(const Cell& cell,
                                                                     absl::string_view form,
                                                                     int ranks,
                                                                     const StepTensors* shared);

/// Contenders "limit", of which the fastest counts: kernels with plain and with streaming stores
/// that take the time of the loads and stores of one rank's share of a fused step: as many streams
/// and bytes, in this rank's own memory, without waits and with next to no arithmetic. Run on all
/// ranks at once, they show the limit of the machine's memory. LAMB goes twice over its states and
/// weights, because a tensor's norms are known only after the first pass; caching between the
/// passes is not modelled. Many tensors count as one of as many elements. InvalidArgument for a
/// number of ranks without a kernel, and for LAMB of a dtype other than f32.
absl::StatusOr<std::vector<Contender>> MemoryLimit(const Cell& cell, int ranks);

/// Bytes that a fused step loads and stores on one rank.
int64_t StepBytes(const Cell& cell, int ranks);

}  // namespace coconet::bench
