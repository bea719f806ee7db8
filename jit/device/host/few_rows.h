#pragma once

// A matrix product of few rows (tiles.h): each block, a thread, computes some of the columns. Such
// a product takes as long as loading b from memory, or as multiplying: packs of b are loaded in the
// order in which they lie in memory, and multiplied with all rows while they are in the caches.

namespace coconet {

/// g++ loads a pack again for each use unless it has to be in a register.
template <class T, int V>
CC_DEVICE void KeepInRegister(Pack<T, V>& x) {
#if defined(__x86_64__)
  __asm__("" : "+v"(x.d));
#else
  (void)x;
#endif
}

/// The sum of all lanes.
template <int V>
CC_DEVICE float SumLanes(Pack<float, V> x) {
  if constexpr (V == 1) {
    return x.d;
  } else {
    struct Halves {
      Pack<float, V / 2> half[2];
    } halves = __builtin_bit_cast(Halves, x);
    return SumLanes(halves.half[0] + halves.half[1]);
  }
}

/// One of `parts` parts of `rows` rows, whose sizes differ by one row at most.
struct RowGroup {
  int first, rows;
};
CC_DEVICE RowGroup RowGroupOf(int rows, int parts, int part) {
  const int each = rows / parts, more = rows % parts;
  return {part * each + (part < more ? part : more), each + (part < more)};
}

/// This block's columns of n: a multiple of a cache line of halves, except in the last block.
struct ColumnRange {
  Index begin, end;
};
CC_DEVICE ColumnRange OwnColumns(const Grid& grid, Index n) {
  constexpr Index kLine = 32;
  const Index lines = (n + kLine - 1) / kLine;
  const Index begin = lines * grid.BlockId() / grid.GridSize() * kLine,
              end = lines * (grid.BlockId() + 1) / grid.GridSize() * kLine;
  return {begin, end < n ? end : n};
}

/// Where an element of op(a) lies in a.
template <bool kTransposeA, class T>
CC_DEVICE Index PlaceInA(const Product<T>& p, Index row, Index k) {
  return kTransposeA ? k * p.lda + row : row * p.lda + k;
}
template <bool kTransposeA, class T>
CC_DEVICE float ElementOfA(const Product<T>& p, Index row, Index k) {
  return Get(Load<1>(p.a + PlaceInA<kTransposeA>(p, row, k)), 0);
}

/// Stores `count` sums at c's `row` and `column`.
template <class T>
CC_DEVICE void StoreSums(const Product<T>& p, Index row, Index column, const float* sums,
                         Index count) {
  constexpr int V = kRegisterWords;
  T* const to = p.c + row * p.ldc + column;
  Index j = 0;
  for (; j + V <= count; j += V) Store<kCached>(to + j, LoadLanes<V>(sums + j));
  for (; j < count; ++j) Store<kCached>(to + j, Splat<1>(sums[j]));
}

/// Floats of c that a thread has at a time on its stack.
constexpr int kSumFloats = 1 << 14;

}  // namespace coconet

#include "dots.h"
#include "matrix_registers.h"
#include "outer_products.h"

namespace coconet {

template <bool kTransposeA, bool kTransposeB, class T>
CC_DEVICE void MultiplyFewRows(const Grid& grid, const Product<T>& p) {
  const ColumnRange columns = OwnColumns(grid, p.n);
  if (p.m == 0) return;
  if constexpr (kTransposeB) {
    if (!MultipliedByMatrices<kTransposeA>(columns, p)) MultiplyByRowsOfB<kTransposeA>(columns, p);
  } else if (p.m <= 2)
    MultiplyByColumnsOfB<kTransposeA, 2, 4>(columns, p);
  else
    MultiplyByColumnsOfB<kTransposeA, kOuterRows, 2>(columns, p);
}

}  // namespace coconet
