#pragma once

#include <string>

namespace coconet {

/// Kernels of warp groups, for both dialects of GPUs, most with a planted mistake each. Their
/// arguments are SimtLab's.
///
/// product_T_AB_S, and sound and others of one product: 128 threads multiply a, 64 rows, by b, 2 *
/// S columns, of T (f16, bf16, f8e4m3, f8e5m2), both 128 bytes deep. In p.a are a at word 0, b at
/// 2048 and the sums, an f32[64, 2 * S], from 10240 on. An operand is stored [line, k], or [k,
/// line] if its letter is t.
std::string ProductKernels();

/// Rings of slabs that a thread of the third warp group fills by tensor loads and the other two
/// multiply: along_k and along_lines, with a[128, k] and b[64, k] by the arguments' maps 0 and 1,
/// either stored with a box of 64 k and so many lines, or of 16 k and 64 lines. p.n is k; the sums,
/// an f32[128, 64], are in p.a from kPlaceOfRingSums on.
std::string RingKernels();
constexpr int kPlaceOfRingSums = 24576;

/// Blocks whose parts meet at named barriers, and whose warp groups give each other registers.
std::string PartKernels();
/// Blocks whose counts of registers no GPU's compiler takes.
std::string ImpossiblePartKernels();

}  // namespace coconet
