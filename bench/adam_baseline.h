#ifndef COCONET_BENCH_ADAM_BASELINE_H_
#define COCONET_BENCH_ADAM_BASELINE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/array.h"
#include "bench/kernels.h"
#include "coconet/base/dtype.h"

namespace coconet::bench {

/// How the baseline is written; the faster of its type's forms counts.
enum class BaselineForm : uint8_t {
  kPlain,      // f32
  kStreaming,  // f32, stores bypass the caches
  kWidened,    // f16 gradients, which are made f32 first
  kHalf,       // f16 gradients, reduced as they are
};
absl::string_view Name(BaselineForm form);  // in words
/// Empty for a type that the baseline does not know.
std::vector<BaselineForm> FormsFor(DType dtype);

/// A step of data-parallel Adam as a careful user writes it today: MPI_Allreduce of the gradient in place, then one
/// vectorised loop over the whole tensor, on every process.
class AdamBaseline {
 public:
  static absl::StatusOr<std::unique_ptr<AdamBaseline>> Make(BaselineForm form, int64_t n, int ranks);

  absl::Status Run(int64_t steps);

  /// Gradient and weights: f32, or f16 in the mixed forms, where the weights have an f32 master copy.
  void* gradient() const { return gradient_.as<void>(); }
  void* weights() const { return weights_.as<void>(); }
  float* master() const { return master_.as<float>(); }  // null in f32

 private:
  AdamBaseline(BaselineForm form, int64_t n, int ranks) : form_(form), n_(n), ranks_(ranks) {}
  absl::Status Reduce();
  void Update(const AdamStep& step);

  BaselineForm form_;
  int64_t n_;
  int ranks_;
  int64_t step_ = 0;
  Array gradient_, weights_, m_, v_;
  Array master_, wide_;  // mixed forms
};

}  // namespace coconet::bench

#endif  // COCONET_BENCH_ADAM_BASELINE_H_
