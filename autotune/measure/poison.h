#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "coconet/base/dtype.h"

namespace coconet {

// What memory holds where no tensor's element is: so that neither a step that reads there nor one
// that writes there goes unseen. Of floats signaling NaNs: results that were computed from them are
// NaN, and a sum that is stored there in place is another NaN, a quiet one. Of integers ones: they
// are rows of most tables, where -1 would be none and add nothing.

/// Fills memory that begins `at` bytes behind an element's begin.
void Poison(DType dtype, int64_t at, absl::Span<char> memory);
/// The first byte that is not as Poison left it; memory.size(): none.
int64_t FirstUnpoisoned(DType dtype, int64_t at, absl::Span<const char> memory);

}  // namespace coconet
