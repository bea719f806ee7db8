#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/baselines/array.h"
#include "bench/baselines/kernels.h"
#include "bench/optimizers/baseline.h"
#include "bench/optimizers/cell.h"

namespace coconet::bench {

/// The ways to write a step over scattered tensors.
struct ScatteredForm {
  bool lamb = false;  // else Adam
  /// LAMB: the first pass stores the step's direction; else the second pass recomputes it.
  bool stored = false;
  /// Streaming stores of the flat gradients and of the weights (Adam: of everything).
  bool streaming = false;
};
std::string Name(const ScatteredForm& form);  // in words
/// Empty unless the cell is LAMB or Adam, in f32.
std::vector<ScatteredForm> ScatteredFormsFor(const Cell& cell);

/// The memory of a step over many tensors.
struct ScatteredMemory {
  std::vector<int64_t> sizes;
  std::vector<int64_t> offsets;  // in the flat arrays, aligned as the kernels require
  int64_t end = 0;               // length of the flat arrays
  StepTensors tensors;
  Array own;  // of `tensors`, unless they are shared
  Array flat, m, v;

  static absl::StatusOr<std::shared_ptr<const ScatteredMemory>> Make(const Cell& cell,
                                                                     const StepTensors* shared);
};

/// A step over many tensors: copies the gradients into one flat array, sums it in place by
/// MPI_Allreduce, and, tensor by tensor, updates flat moments and scattered weights in vectorised
/// loops that read the flat array, so that nothing is copied back.
class ScatteredBaseline final : public Baseline {
 public:
  ScatteredBaseline(const ScatteredForm& form, std::shared_ptr<const ScatteredMemory> memory,
                    int ranks)
      : form_(form), memory_(std::move(memory)), ranks_(ranks) {}

  void Begin(int rank) override;
  absl::Status Run(int64_t steps) override;
  std::vector<const void*> weights() const override;

 private:
  void Flatten();
  void Update(const AdamStep& step);
  void UpdateLamb(const AdamStep& step, size_t tensor);

  const ScatteredForm form_;
  const std::shared_ptr<const ScatteredMemory> memory_;
  const int ranks_;
  int64_t step_ = 0;
};

}  // namespace coconet::bench
