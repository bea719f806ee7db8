#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/baselines/array.h"
#include "bench/baselines/gemm.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// How a careful user multiplies, and in which type he sums over ranks.
struct ProductForm {
  OneDnnGemm::Weights weights{};
  bool sums_in_f32 = false;  // else in the operands' type
};

/// A product z = sum over ranks of x . w, with x [tokens, k] and w [k, columns] sliced over k, and
/// what follows it. Types are f32 or bf16, columns a multiple of kEpilogueColumns.
struct ProductCase {
  enum class Rest : uint8_t {
    kDropout,  // y = dropout(z + b) + r
    kNorm      // y = rms_norm(z + r) * g, with w as [columns, k]
  };
  Rest rest{};
  DType dtype = DType::kF32;
  int64_t tokens = 0, k = 0, columns = 0;
  int64_t copies = 1;  // of w, which steps use in turn

  static constexpr double kEps = 1e-5;  // of the norm
};

/// A step of a case as a careful user writes it today; one object per process: oneDNN on one
/// thread, with weights as stored, since a training step may have changed them, or rearranged once,
/// for constant weights; MPI_Allreduce in place; one vectorised loop. The inputs "x", "w", "b" or
/// "g", and "r" are NumberAt's.
class ProductBaseline {
 public:
  /// Requires k in equal slices of the ranks.
  static absl::StatusOr<std::unique_ptr<ProductBaseline>> Make(const ProductCase& c,
                                                               const ProductForm& form,
                                                               const Rank& rank);
  absl::Status Run();
  /// The product only.
  absl::Status RunProduct();
  std::vector<float> Result() const;
  /// Whether the product is of operands widened to f32.
  bool widens() const { return products_[0]->multiplies() != c_.dtype; }

 private:
  ProductBaseline(const ProductCase& c, bool sums_in_f32) : c_(c), sums_in_f32_(sums_in_f32) {}
  int64_t elements() const { return c_.tokens * c_.columns; }
  void RunRest();

  ProductCase c_;
  bool sums_in_f32_;
  size_t turn_ = 0;
  Array x_, r_, vector_, z_, h_, y_;
  std::vector<Array> weights_;
  std::vector<std::unique_ptr<OneDnnGemm>> products_;
};

}  // namespace coconet::bench
