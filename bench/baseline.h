#ifndef COCONET_BENCH_BASELINE_H_
#define COCONET_BENCH_BASELINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/cell.h"

namespace coconet::bench {

/// A step of a data-parallel optimizer as a careful user writes it today with MPI, on every
/// process.
class Baseline {
 public:
  virtual ~Baseline() = default;

  /// Gradients and weights become those of FillGradient and FillWeights, moments zero.
  virtual void Begin(int rank) = 0;
  virtual absl::Status Run(int64_t steps) = 0;
  /// By tensor.
  virtual std::vector<const void*> weights() const = 0;
};

/// Gradients and weights of each tensor, f32, that another contender owns. After Begin gradients
/// are only read.
struct StepTensors {
  std::vector<float*> gradients, weights;
};

struct NamedBaseline {
  std::string form;  // how it is written, in words
  std::unique_ptr<Baseline> baseline;
};

/// Returns the forms in which the baseline of a cell can be written (the fastest counts), or only
/// the one called `form`, unless that is empty. Over a list of tensors all of them use the same
/// memory; gradients and weights are `shared`, unless that is null. Empty for a cell without a
/// baseline; InvalidArgument when there is no such form.
absl::StatusOr<std::vector<NamedBaseline>> MakeBaselines(const Cell& cell, absl::string_view form,
                                                         int ranks, const StepTensors* shared);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_BASELINE_H_
