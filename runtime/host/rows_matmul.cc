#include "runtime/host/rows_matmul.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"

namespace coconet {

int64_t RowsMatmul::StepOf(int64_t rows) {
  constexpr int64_t kLeast = 16, kSteps = 16;
  const auto floor = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows)));
  const int64_t step = std::max(kLeast, floor / kSteps);
  return (rows + step - 1) / step * step;
}

RowsMatmul::RowsMatmul(const MatmulShape& shape, Make make)
    : shape_(shape),
      make_(make),
      a_size_(static_cast<int64_t>(SizeOf(shape.float8_a.value_or(shape.dtype)))),
      c_size_(static_cast<int64_t>(SizeOf(shape.dtype))) {
  const auto packed = [&](int64_t row_bytes) {
    const int64_t bytes = shape_.m * row_bytes;
    Scratch<char> scratch(bytes);
    std::memset(scratch.data(), 0, bytes);  // no denormal numbers in rows between
    return scratch;
  };
  a_ = packed(shape_.a.row * a_size_);
  c_ = packed(shape_.c.row * c_size_);
}

absl::StatusOr<std::unique_ptr<RowsMatmul>> RowsMatmul::Create(const MatmulShape& shape,
                                                               Make make) {
  std::unique_ptr<RowsMatmul> made(new RowsMatmul(shape, make));
  ASSIGN_OR_RETURN(std::unique_ptr<Matmul> whole, make(shape));
  made->products_.emplace_back(shape.m, std::move(whole));
  return made;
}

Matmul* RowsMatmul::Of(int64_t rows) {
  const auto found =
      absl::c_find_if(products_, [&](const auto& product) { return product.first == rows; });
  if (found != products_.end()) return found->second.get();
  MatmulShape shape = shape_;
  shape.m = rows;
  absl::StatusOr<std::unique_ptr<Matmul>> made = make_(shape);
  if (!made.ok()) return nullptr;
  return products_.emplace_back(rows, *std::move(made)).second.get();
}

bool RowsMatmul::Run(const void* a, const void* b, void* c, absl::Span<const Range> rows) {
  int64_t count = 0;
  for (const Range& range : rows) count += range.size();
  if (count == 0) return true;
  const int64_t step = std::min(StepOf(count), shape_.m), a_row = shape_.a.row * a_size_,
                c_row = shape_.c.row * c_size_;
  Matmul* const product = Of(step);
  if (product == nullptr) return false;
  const char* const from = static_cast<const char*>(a);
  char* const to = static_cast<char*>(c);
  if (rows.size() == 1 && rows[0].begin + step <= shape_.m)
    return product->Run(from + rows[0].begin * a_row, b, to + rows[0].begin * c_row);
  char* packed = a_.data();
  for (const Range& range : rows) {
    // The last row of a matrix may end with its columns.
    const int64_t bytes = (range.size() - 1) * a_row + shape_.k * a_size_;
    if (range.size() > 0) std::memcpy(packed, from + range.begin * a_row, bytes);
    packed += range.size() * a_row;
  }
  if (!product->Run(a_.data(), b, c_.data())) return false;
  const char* result = c_.data();
  for (const Range& range : rows) {
    for (int64_t row = range.begin; row < range.end; ++row, result += c_row)
      std::memcpy(to + row * c_row, result, shape_.n * c_size_);
  }
  return true;
}

}  // namespace coconet
