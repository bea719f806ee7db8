#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/optimizers/cell.h"

namespace coconet::bench {

/// A step of a data-parallel optimizer as a careful user writes it today with MPI; one object per
/// process.
class Baseline {
 public:
  virtual ~Baseline() = default;

  /// Sets gradients and weights to those of FillGradient and FillWeights, moments to zero.
  virtual void Begin(int rank) = 0;
  virtual absl::Status Run(int64_t steps) = 0;
  /// The weights of each tensor.
  virtual std::vector<const void*> weights() const = 0;
};

/// Gradients and weights of each tensor, f32, that another object owns. After Begin gradients are
/// only read.
struct StepTensors {
  std::vector<float*> gradients, weights;
};

struct NamedBaseline {
  std::string form;  // in words
  std::unique_ptr<Baseline> baseline;
};

/// The baselines of a cell, one per form, the fastest of which counts; only the one called `form`,
/// unless that is empty. Over a list of tensors all forms use the same memory, with gradients and
/// weights from `shared`, unless that is null. Empty for a cell without a baseline; InvalidArgument
/// when there is no such form.
absl::StatusOr<std::vector<NamedBaseline>> MakeBaselines(const Cell& cell, absl::string_view form,
                                                         int ranks, const StepTensors* shared);

}  // namespace coconet::bench
