#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "coconet/base/dtype.h"

namespace coconet {

// The content of memory that belongs to no tensor's element, so that steps which read or write
// there are found. Floats are signaling NaNs: results that were computed from them are NaN, and a
// sum that is stored there in place is another NaN, a quiet one. NaNs of f8e4m3, which has one of
// each sign, are negative, and those of sums positive. Integers are ones, which are rows
// of most tables; -1 would be no row and add nothing.

/// Fills memory that begins `at` bytes behind an element's begin.
void Poison(DType dtype, int64_t at, absl::Span<char> memory);
/// The first byte that is not as Poison left it; memory.size(): none.
int64_t FirstUnpoisoned(DType dtype, int64_t at, absl::Span<const char> memory);

}  // namespace coconet
