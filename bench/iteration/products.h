#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/baselines/array.h"
#include "bench/baselines/gemm.h"
#include "coconet/ir/graph.h"

namespace coconet::bench {

/// The matrix products of a program on one rank, by oneDNN on one thread, one after the other: what
/// nothing that computes them so can be faster than. Each has operands of its own, as it has in a
/// step. Transposed operands are multiplied as if they lay straight, which is no slower.
class Products {
 public:
  /// `program` is bound; no operand of a product is sliced, else InvalidArgument.
  static absl::StatusOr<Products> Of(const Graph& program);

  absl::Status Run();
  int count() const { return static_cast<int>(all_.size()); }
  double flops() const { return flops_; }

 private:
  struct One {
    std::unique_ptr<OneDnnGemm> gemm;
    Array a, b, c;
    int64_t batches = 1, a_bytes = 0, b_bytes = 0, c_bytes = 0;  // of one batch
  };
  std::vector<One> all_;
  double flops_ = 0;
};

}  // namespace coconet::bench
