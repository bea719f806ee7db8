#pragma once

// A matrix product of few rows (tiles.h): each block, a thread, computes some of the columns. Such
// a product takes as long as b takes to come from memory, or as the processor takes to multiply:
// packs of b are loaded in the order in which they lie in memory, and meet all rows while they are
// in the caches.

namespace coconet {

/// a * b + c, rounded once where the processor can.
template <int V>
CC_DEVICE Pack<float, V> MultiplyAdd(Pack<float, V> a, Pack<float, V> b, Pack<float, V> c) {
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_fma)
  return {__builtin_elementwise_fma(a.d, b.d, c.d)};
#endif
#else
#if defined(__AVX512F__)
  if constexpr (V == 16) return {__builtin_ia32_vfmaddps512_mask(a.d, b.d, c.d, -1, 4)};
#endif
#if defined(__FMA__)
  if constexpr (V == 8) return {__builtin_ia32_vfmaddps256(a.d, b.d, c.d)};
#endif
#endif
  return a * b + c;
}

/// g++ loads a pack again for each use unless it has to be in a register.
template <int V>
CC_DEVICE void KeepInRegister(Pack<float, V>& x) {
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

/// One of `parts` parts of `rows` rows that differ by one row at most.
struct RowGroup {
  int first, rows;
};
CC_DEVICE RowGroup RowGroupOf(int rows, int parts, int part) {
  const int each = rows / parts, more = rows % parts;
  return {part * each + (part < more ? part : more), each + (part < more)};
}

/// This block's columns of n: multiples of a cache line of halves, but for the last.
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

/// An element of op(a).
template <bool kTransposeA, class T>
CC_DEVICE float ElementOfA(const Product<T>& p, Index row, Index k) {
  return Get(Load<1>(p.a + (kTransposeA ? k * p.lda + row : row * p.lda + k)), 0);
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

/// Floats of c and of a that a thread has at a time on its stack.
constexpr int kSumFloats = 1 << 14, kFactorFloats = 1 << 15;

// ---- b transposed: elements of c are products of rows of a and rows of b

/// Rows of a and of b that are multiplied at once: their products fill the registers.
constexpr int kDotRows = 4, kDotColumns = kRegisterWords < 16 ? 3 : 4;
/// Elements of rows that are multiplied before other rows of a: so many of b stay in the nearest
/// cache. Rows that are kept lie further apart, so as not to displace each other.
constexpr int kDotDepth = 512, kDotPitch = kDotDepth + 16;

/// The `count` elements at `p`, fewer than V, with zeros behind.
template <int V, class T>
CC_DEVICE Pack<float, V> LoadPart(const T* p, int count) {
  Pack<float, V> x = Splat<V>(0.0f);
  for (int i = 0; i < count; ++i) Put<float, V>(x, i, Get(Load<1>(p + i), 0));
  return x;
}

/// sums[i][j] += lanes of row i of a, at `a`, times lanes of row j of b.
template <int kRows, int kColumns>
CC_DEVICE void AddDotLanes(const float* a, Index pitch, Pack<float, kRegisterWords> (&b)[kColumns],
                           Pack<float, kRegisterWords> (&sums)[kRows][kColumns]) {
  CC_UNROLL for (int i = 0; i < kRows; ++i) {
    Pack<float, kRegisterWords> of_a = LoadLanes<kRegisterWords>(a + i * pitch);
    KeepInRegister(of_a);
    CC_UNROLL for (int j = 0; j < kColumns; ++j) sums[i][j] = MultiplyAdd(of_a, b[j], sums[i][j]);
  }
}

/// sums[i * ld + j] += row i of a . row j of b, where a is zero beyond `depths`. kKeep: stores b as
/// floats at `kept`.
template <int kRows, int kColumns, bool kKeep, class T>
CC_DEVICE void AddDots(const float* a, Index pitch, const T* b, Index ldb, int depths, float* sums,
                       Index ld, float* kept) {
  constexpr int V = kRegisterWords;
  Pack<float, V> dots[kRows][kColumns], of_b[kColumns];
  CC_UNROLL for (int i = 0; i < kRows; ++i) CC_UNROLL for (int j = 0; j < kColumns; ++j)
      dots[i][j] = Splat<V>(0.0f);
  int k = 0;
  for (; k + V <= depths; k += V) {
    CC_UNROLL for (int j = 0; j < kColumns; ++j) {
      Prefetch(b + (kColumns + j) * ldb + k);  // of the next columns
      of_b[j] = LoadAnywhere<V>(b + j * ldb + k);
      KeepInRegister(of_b[j]);
      if constexpr (kKeep) StoreLanes<V>(kept + j * kDotPitch + k, of_b[j]);
    }
    AddDotLanes(a + k, pitch, of_b, dots);
  }
  if (k < depths) {
    CC_UNROLL for (int j = 0; j < kColumns; ++j) {
      of_b[j] = LoadPart<V>(b + j * ldb + k, depths - k);
      if constexpr (kKeep) StoreLanes<V>(kept + j * kDotPitch + k, of_b[j]);
    }
    AddDotLanes(a + k, pitch, of_b, dots);
  }
  CC_UNROLL for (int i = 0; i < kRows; ++i) CC_UNROLL for (int j = 0; j < kColumns; ++j)
      sums[i * ld + j] += SumLanes(dots[i][j]);
}
/// The same for up to kRows rows.
template <int kRows, int kColumns, bool kKeep, class T>
CC_DEVICE void AddDotsOf(int rows, const float* a, Index pitch, const T* b, Index ldb, int depths,
                         float* sums, Index ld, float* kept) {
  if constexpr (kRows > 0) {
    if (rows == kRows)
      AddDots<kRows, kColumns, kKeep>(a, pitch, b, ldb, depths, sums, ld, kept);
    else
      AddDotsOf<kRows - 1, kColumns, kKeep>(rows, a, pitch, b, ldb, depths, sums, ld, kept);
  }
}

/// The same for any number of rows and depths: the first rows keep b for the others.
template <int kColumns, class T>
CC_DEVICE void AddDotsOfAll(int rows, const float* a, Index pitch, const T* b, Index ldb,
                            Index depths, float* sums, Index ld) {
  const int groups = (rows + kDotRows - 1) / kDotRows;
  if (groups == 1) {
    AddDotsOf<kDotRows, kColumns, false>(rows, a, pitch, b, ldb, int(depths), sums, ld, nullptr);
    return;
  }
  alignas(64) float kept[kColumns * kDotPitch];
  for (Index k = 0; k < depths; k += kDotDepth) {
    const int part = int(depths - k < kDotDepth ? depths - k : kDotDepth);
    for (int g = 0; g < groups; ++g) {
      const RowGroup group = RowGroupOf(rows, groups, g);
      const float* const of_a = a + group.first * pitch + k;
      float* const of_c = sums + group.first * ld;
      if (g == 0) {
        AddDotsOf<kDotRows, kColumns, true>(group.rows, of_a, pitch, b + k, ldb, part, of_c, ld,
                                            kept);
      } else {
        AddDotsOf<kDotRows, kColumns, false>(group.rows, of_a, pitch,
                                             static_cast<const float*>(kept), kDotPitch, part, of_c,
                                             ld, nullptr);
      }
    }
  }
}

template <bool kTransposeA, class T>
CC_DEVICE void MultiplyByRowsOfB(const ColumnRange& columns, const Product<T>& p) {
  const int rows = int(p.m);
  alignas(64) float sums[kSumFloats], a[kFactorFloats];
  const Index wide = kSumFloats / rows / kDotColumns * kDotColumns,
              deep = (kFactorFloats / rows - 16) / 64 * 64, pitch = deep + 16;
  for (Index first = columns.begin; first < columns.end; first += wide) {
    const Index count = columns.end - first < wide ? columns.end - first : wide;
    for (int i = 0; i < rows; ++i) {
      for (Index j = 0; j < count; ++j) sums[i * wide + j] = 0;
    }
    for (Index k = 0; k < p.k; k += deep) {
      const Index depths = p.k - k < deep ? p.k - k : deep;
      for (int i = 0; i < rows; ++i) {
        Index d = 0;
        for (; d < depths; ++d) a[i * pitch + d] = ElementOfA<kTransposeA>(p, i, k + d);
        for (; d % kRegisterWords != 0; ++d) a[i * pitch + d] = 0;
      }
      const T* const b = p.b + first * p.ldb + k;
      Index j = 0;
      for (; j + kDotColumns <= count; j += kDotColumns)
        AddDotsOfAll<kDotColumns>(rows, a, pitch, b + j * p.ldb, p.ldb, depths, sums + j, wide);
      for (; j < count; ++j)
        AddDotsOfAll<1>(rows, a, pitch, b + j * p.ldb, p.ldb, depths, sums + j, wide);
    }
    for (int i = 0; i < rows; ++i) StoreSums(p, i, first, sums + i * wide, count);
  }
}

// ---- Rows of b, each times an element of a, add up to rows of c

/// Rows of c whose sums fill the registers, and rows of b that are added to them at once: of few
/// rows of c as many as memory delivers at the same time, of more so many that loading the sums
/// takes less time than adding.
constexpr int kOuterRows = 6, kOuterDepth = 32, kStreams = 8;

/// sums[i][j] += a[k][i] * b[k][j], for kPacks packs of columns. kKeep: stores b as floats at
/// `kept`.
template <int kRows, int kPacks, bool kKeep, class T>
CC_DEVICE void AddOuter(const float* a, Index lda, const T* b, Index ldb, int depths, float* sums,
                        float* kept) {
  constexpr int V = kRegisterWords, W = V * kPacks;
  Pack<float, V> x[kRows][kPacks];
  CC_UNROLL for (int i = 0; i < kRows; ++i) CC_UNROLL for (int j = 0; j < kPacks; ++j) x[i][j] =
      LoadLanes<V>(sums + i * W + j * V);
  for (int k = 0; k < depths; ++k) {
    Pack<float, V> of_b[kPacks];
    if constexpr (kKeep) Prefetch(b + k * ldb + 2 * W);
    CC_UNROLL for (int j = 0; j < kPacks; ++j) {
      of_b[j] = LoadAnywhere<V>(b + k * ldb + j * V);
      if constexpr (kRows > 1) KeepInRegister(of_b[j]);
      if constexpr (kKeep) StoreLanes<V>(kept + k * W + j * V, of_b[j]);
    }
    CC_UNROLL for (int i = 0; i < kRows; ++i) {
      Pack<float, V> of_a = Splat<V>(a[k * lda + i]);
      if constexpr (kPacks > 1) KeepInRegister(of_a);
      CC_UNROLL for (int j = 0; j < kPacks; ++j) x[i][j] = MultiplyAdd(of_a, of_b[j], x[i][j]);
    }
  }
  CC_UNROLL for (int i = 0; i < kRows; ++i) CC_UNROLL for (int j = 0; j < kPacks; ++j)
      StoreLanes<V>(sums + i * W + j * V, x[i][j]);
}
/// The same for up to kRows rows.
template <int kRows, int kPacks, bool kKeep, class T>
CC_DEVICE void AddOuterOf(int rows, const float* a, Index lda, const T* b, Index ldb, int depths,
                          float* sums, float* kept) {
  if constexpr (kRows > 0) {
    if (rows == kRows)
      AddOuter<kRows, kPacks, kKeep>(a, lda, b, ldb, depths, sums, kept);
    else
      AddOuterOf<kRows - 1, kPacks, kKeep>(rows, a, lda, b, ldb, depths, sums, kept);
  }
}

/// The factors op(a)[i][k + d] at a[d][i].
template <bool kTransposeA, class T>
CC_DEVICE void TakeFactors(const Product<T>& p, Index k, Index depths, float* a) {
  const int rows = int(p.m);
  for (Index d = 0; d < depths; ++d) {
    for (int i = 0; i < rows; ++i) a[d * rows + i] = ElementOfA<kTransposeA>(p, i, k + d);
  }
}

/// Adds to the sums of all rows of c, of W columns, what W columns of b have at `kept`.
template <int W>
CC_DEVICE void AddKept(int rows, const float* a, const float* kept, int depths, int first_group,
                       float* sums) {
  const int groups = (rows + kOuterRows - 1) / kOuterRows;
  for (int g = first_group; g < groups; ++g) {
    const RowGroup group = RowGroupOf(rows, groups, g);
    AddOuterOf<kOuterRows, W / kRegisterWords, false>(group.rows, a + group.first, rows, kept, W,
                                                      depths, sums + group.first * W, nullptr);
  }
}

/// Stores sums [columns / W][rows][W] of columns from `first` on.
template <int W, class T>
CC_DEVICE void StoreOuterSums(const Product<T>& p, Index first, Index count, const float* sums) {
  for (Index j = 0; j < count; j += W) {
    for (Index i = 0; i < p.m; ++i)
      StoreSums(p, i, first + j, sums + j * p.m + i * W, count - j < W ? count - j : W);
  }
}

/// b as it is, in packs of kPacks times V columns. Where there are more than kRows rows, the first
/// of them keep b for the others.
template <bool kTransposeA, int kRows, int kPacks, class T>
CC_DEVICE void MultiplyByColumnsOfB(const ColumnRange& columns, const Product<T>& p) {
  constexpr int W = kRegisterWords * kPacks;
  const int rows = int(p.m), groups = (rows + kRows - 1) / kRows;
  const int depth = groups == 1 ? kStreams : kOuterDepth;
  alignas(64) float sums[2 * kSumFloats], kept[kOuterDepth * W], a[kOuterDepth * kMostProductRows];
  const Index wide = 2 * kSumFloats / rows / W * W;
  for (Index first = columns.begin; first < columns.end; first += wide) {
    const Index count = columns.end - first < wide ? columns.end - first : wide;
    for (Index i = 0; i < (count + W - 1) / W * W * rows; ++i) sums[i] = 0;
    for (Index k = 0; k < p.k; k += depth) {
      const int depths = int(p.k - k < depth ? p.k - k : depth);
      TakeFactors<kTransposeA>(p, k, depths, a);
      const T* const b = p.b + k * p.ldb + first;
      for (Index j = 0; j < count; j += W) {
        float* const of_columns = sums + j * rows;
        if (count - j < W) {
          for (int d = 0; d < depths; ++d) {
            for (int i = 0; i < W; ++i)
              kept[d * W + i] = j + i < count ? Get(Load<1>(b + d * p.ldb + j + i), 0) : 0.0f;
          }
          AddKept<W>(rows, a, kept, depths, 0, of_columns);
        } else if (groups == 1) {
          AddOuterOf<kRows, kPacks, false>(rows, a, rows, b + j, p.ldb, depths, of_columns,
                                           nullptr);
        } else {
          AddOuterOf<kRows, kPacks, true>(RowGroupOf(rows, groups, 0).rows, a, rows, b + j, p.ldb,
                                          depths, of_columns, kept);
          AddKept<W>(rows, a, kept, depths, 1, of_columns);
        }
      }
    }
    StoreOuterSums<W>(p, first, count, sums);
  }
}

template <bool kTransposeA, bool kTransposeB, class T>
CC_DEVICE void MultiplyFewRows(const Grid& grid, const Product<T>& p) {
  const ColumnRange columns = OwnColumns(grid, p.n);
  if (p.m == 0) return;
  if constexpr (kTransposeB)
    MultiplyByRowsOfB<kTransposeA>(columns, p);
  else if (p.m <= 2)
    MultiplyByColumnsOfB<kTransposeA, 2, 4>(columns, p);
  else
    MultiplyByColumnsOfB<kTransposeA, kOuterRows, 2>(columns, p);
}

}  // namespace coconet
