#ifndef COCONET_RUNTIME_NODE_REDUCE_H_
#define COCONET_RUNTIME_NODE_REDUCE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "coconet/base/dtype.h"

namespace coconet {

/// What the library tier computes with, vectorised for the widest vectors the CPU has. Integer sums
/// wrap around; a sum of bools is their "or".

/// out[i] = in[0][i] + in[1][i] + ..., in this order, for all of `outs`; f16 and bf16 are summed in
/// f32 and rounded once. At least two `ins`; they may be among `outs`.
void ReduceInto(absl::Span<void* const> outs, absl::Span<const void* const> ins, int64_t count,
                DType dtype, ReduceKind kind);

/// inout[i] = in[i] + inout[i].
void Accumulate(void* inout, const void* in, int64_t count, DType dtype, ReduceKind kind);

}  // namespace coconet

#endif  // COCONET_RUNTIME_NODE_REDUCE_H_
