#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/baselines/array.h"
#include "bench/baselines/gemm.h"
#include "coconet/base/dtype.h"

namespace coconet::bench {

/// y = dropout(sum over ranks of x . w + b) + r, with x [tokens, k] and w [k, columns]
/// sliced over k.
struct EpilogueSize {
  DType dtype = DType::kF32;
  int64_t tokens = 0, k = 0, columns = 0;
};

/// The type in which the products are summed over the ranks; the faster form counts.
enum class EpilogueForm : uint8_t {
  kOwn,   // the type of x and w
  kInF32  // for bf16: oneDNN stores its product in f32
};
std::vector<EpilogueForm> EpilogueFormsFor(DType dtype);

/// A step of it as a careful user writes it today; one object per process: oneDNN on one thread,
/// with weights as stored, since a training step may have changed them, or rearranged once, for
/// constant weights; MPI_Allreduce in place; one vectorised loop. The inputs "x", "w", "b" and "r"
/// are NumberAt's.
class EpilogueBaseline {
 public:
  /// InvalidArgument for a type without forms, and unless `columns` is a multiple of
  /// kEpilogueColumns.
  static absl::StatusOr<std::unique_ptr<EpilogueBaseline>> Make(EpilogueForm form,
                                                                OneDnnGemm::Weights weights,
                                                                const EpilogueSize& size, int rank,
                                                                int ranks);

  absl::Status Run(int64_t steps);
  /// The product only.
  absl::Status RunProduct(int64_t steps);
  /// The loop only.
  absl::Status RunLoop(int64_t steps);
  std::vector<float> Result() const;
  /// How it computes: "sums in f32", and whether the product is of operands widened to f32.
  std::string Form() const;

 private:
  EpilogueBaseline(EpilogueForm form, const EpilogueSize& size) : form_(form), size_(size) {}
  absl::Status AllReduce();
  int64_t elements() const { return size_.tokens * size_.columns; }

  EpilogueForm form_;
  EpilogueSize size_;
  Array x_, w_, b_, r_, z_, y_;
  std::unique_ptr<OneDnnGemm> product_;
};

}  // namespace coconet::bench
