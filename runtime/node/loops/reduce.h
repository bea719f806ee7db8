#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "coconet/base/dtype.h"

namespace coconet {

/// Reductions of host memory for library collectives, vectorised for the CPU's widest vectors.
/// Integer sums wrap around; a sum of bools is their logical or.

/// out[i] = in[0][i] + in[1][i] + ..., in this order, for every `out`; narrow floats are summed in
/// f32 and rounded once. At least two `ins`; an `out` may be one of the `ins`.
void ReduceInto(absl::Span<void* const> outs, absl::Span<const void* const> ins, int64_t count,
                DType dtype, ReduceKind kind);

/// Copies `bytes` bytes; `out` may be `in`.
void CopyUnlessSame(void* out, const void* in, int64_t bytes);

}  // namespace coconet
