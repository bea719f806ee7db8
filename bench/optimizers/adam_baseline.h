#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/baselines/array.h"
#include "bench/baselines/kernels.h"
#include "bench/optimizers/baseline.h"
#include "coconet/base/dtype.h"

namespace coconet::bench {

/// The ways to write the baseline; of those for a type the fastest counts.
enum class BaselineForm : uint8_t {
  kPlain,      // f32
  kStreaming,  // f32, stores bypass the caches
  kWidened,    // f16 gradients, converted to f32 before the reduction
  kHalf,       // f16 gradients, reduced in f16
};
absl::string_view Name(BaselineForm form);  // in words
/// Empty for a type without a baseline.
std::vector<BaselineForm> FormsFor(DType dtype);

/// A step of data-parallel Adam over one tensor: MPI_Allreduce of the gradient in place, then one
/// vectorised loop over the whole tensor. Because the reduction is in place, the gradient grows
/// from step to step after Begin until it overflows. That costs no time; denormals would, but there
/// are none.
class AdamBaseline final : public Baseline {
 public:
  static absl::StatusOr<std::unique_ptr<AdamBaseline>> Make(BaselineForm form, int64_t n,
                                                            int ranks);

  void Begin(int rank) override;
  absl::Status Run(int64_t steps) override;
  std::vector<const void*> weights() const override { return {weights_.as<void>()}; }

 private:
  AdamBaseline(BaselineForm form, int64_t n, int ranks) : form_(form), n_(n), ranks_(ranks) {}
  absl::Status Reduce();
  void Update(const AdamStep& step);

  BaselineForm form_;
  int64_t n_;
  int ranks_;
  int64_t step_ = 0;
  Array gradient_, weights_, m_, v_;  // gradient and weights: f32, or f16 in the mixed forms
  Array master_, wide_;               // mixed forms
};

}  // namespace coconet::bench
