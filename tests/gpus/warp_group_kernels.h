#pragma once

#include <string>

namespace coconet {

/// Kernels of warp groups, for both dialects of GPUs, most with a planted mistake each. Their
/// arguments are SimtLab's.
///
/// product_T_AB_S, and sound and others of one product: 128 threads multiply a, 64 rows, by b, 2 *
/// S columns, of T (f16, bf16), both 64 deep. In p.a are a at word 0, b at 2048 and the sums, an
/// f32[64, 2 * S], from 10240 on. An operand is stored [line, k], or [k, line] if its letter is t.
std::string ProductKernels();

}  // namespace coconet
