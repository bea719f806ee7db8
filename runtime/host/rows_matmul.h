#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coconet/base/slices.h"
#include "runtime/host/matmul.h"

namespace coconet {

/// A matrix product of which only some rows are needed, on the calling thread. The rows in use are
/// multiplied at once, packed unless they are one range. Not thread-safe.
class RowsMatmul {
 public:
  /// `shape`: of the product of all rows, whose operand a is not transposed. `make` makes products
  /// of other numbers of rows, with the same strides.
  using Make = absl::StatusOr<std::unique_ptr<Matmul>> (*)(const MatmulShape& shape);
  static absl::StatusOr<std::unique_ptr<RowsMatmul>> Create(const MatmulShape& shape, Make make);

  /// Multiplies ascending, disjoint ranges of rows. Rows behind a range may be overwritten, too.
  /// Allocates when the number of rows has another step (StepOf) than ever before. Returns false
  /// when the library fails.
  bool Run(const void* a, const void* b, void* c, absl::Span<const Range> rows);

  /// The number of rows that are multiplied if `rows` are in use: multiples of 16 up to 256, then
  /// steps of at most a sixteenth.
  static int64_t StepOf(int64_t rows);

 private:
  RowsMatmul(const MatmulShape& shape, Make make);
  /// The product of so many rows; null when the library fails.
  Matmul* Of(int64_t rows);

  MatmulShape shape_;
  Make make_;
  int64_t a_size_, c_size_;                                            // bytes of an element
  std::vector<std::pair<int64_t, std::unique_ptr<Matmul>>> products_;  // by number of rows
  Scratch<char> a_, c_;                                                // packed rows
};

}  // namespace coconet
