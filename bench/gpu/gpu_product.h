#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// A matrix product, [rows, inner] x [inner, columns] on each rank.
struct ProductCase {
  int64_t rows = 0, inner = 0, columns = 0;
  DType dtype = DType::kBF16;
  int candidate = 0;  // GemmStep::candidate
  int beside = 0;     // multiprocessors of the rank that stay idle
};

/// A product by the library that plans use, and nothing else, on memory of its own.
class Product {
 public:
  /// Collective. OutOfRange: the library has no such candidate.
  static absl::StatusOr<std::unique_ptr<Product>> Make(Rank& rank, const ProductCase& c);
  absl::Status Run(int64_t steps) { return plan_->RunSteps(steps); }

 private:
  std::vector<std::unique_ptr<Memory>> memory_;
  std::unique_ptr<BoundPlan> plan_;  // destroyed before its memory
};

}  // namespace coconet::bench
