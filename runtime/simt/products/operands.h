#pragma once

#include <cstdint>
#include <vector>

#include "runtime/simt_abi.h"

namespace coconet {

/// A product's rows and its depth in bytes (PTX ISA, wgmma.mma_async.m64nNk16 and k32): its
/// operands are rows of a, or columns of b, with so many each.
constexpr int kProductRows = 64, kDepthBytes = 32;

/// Bytes of an element; the elements of a product's depth.
int BytesOf(SimtElement element);
int DepthOf(SimtElement element);

/// 16 bytes of an operand that lie together: of lines from `line` on for one k, or of one line from
/// `k` on.
struct OperandPiece {
  const char* at;
  int line, k;
};
constexpr int kPieceBytes = 16;

/// Bits 4 to 6 of the address combined with bits 7 to 9 by exclusive or: swizzles of 128 bytes.
template <class T>
T* Swizzled(T* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  return reinterpret_cast<T*>(address ^ (address >> 7 & 7) << 4);
}

/// Where the operand's pieces are: by its strides, and swizzled. 8-bit floats are not transposed.
std::vector<OperandPiece> PiecesOf(const SimtOperand& operand, int lines);

/// Reads an operand: element (k, line) is at k * lines + line. Each of `pieces` must be readable.
std::vector<float> ReadOperand(const std::vector<OperandPiece>& pieces, int lines,
                               const SimtOperand& operand);

/// sums[kProductRows, columns] += a[kProductRows, depth] . b[depth, columns], with `a` and `b` as
/// ReadOperand makes them: products of elements are exact in f32, and are added in f32 by ascending
/// k.
void AddProduct(const std::vector<float>& a, const std::vector<float>& b, int columns,
                std::vector<float>& sums);

/// The place in sums[kProductRows, columns] of sum `i` of a warp group's thread `thread`.
inline int PlaceOfSum(int thread, int i, int columns) {
  const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8,
            column = i / 4 * 8 + thread % 4 * 2 + i % 2;
  return row * columns + column;
}

}  // namespace coconet
