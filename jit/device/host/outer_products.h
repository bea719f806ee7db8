#pragma once

// A matrix product of few rows whose b is not transposed (few_rows.h): rows of b, each times an
// element of a, add up to rows of c.

namespace coconet {

/// Rows of c whose sums fill the registers, and rows of b that are added to them at once: for few
/// rows of c as many as memory delivers at the same time, for more rows so many that loading the
/// sums takes less time than adding.
constexpr int kOuterRows = 6, kOuterDepth = 32, kStreams = 8;

/// sums[i][j] += a[k][i] * b[k][j], for a panel of kPacks packs of columns. kKeep: stores b as
/// floats at `kept`.
template <int kRows, int kPacks, bool kKeep, class T>
CC_DEVICE void AddOuterOfPanel(const float* a, Index lda, const T* b, Index ldb, int depths,
                               float* sums, float* kept) {
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
/// The same for `panels` panels in turn, whose sums follow one another.
template <int kRows, int kPacks, bool kKeep, class T>
CC_DEVICE void AddOuter(Index panels, const float* a, Index lda, const T* b, Index ldb, int depths,
                        float* sums, float* kept) {
  constexpr int W = kRegisterWords * kPacks;
  for (Index i = 0; i < panels; ++i)
    AddOuterOfPanel<kRows, kPacks, kKeep>(a, lda, b + i * W, ldb, depths, sums + i * kRows * W,
                                          kept);
}
/// The same for up to kRows rows.
template <int kRows, int kPacks, bool kKeep, class T>
CC_DEVICE void AddOuterOf(int rows, Index panels, const float* a, Index lda, const T* b, Index ldb,
                          int depths, float* sums, float* kept) {
  if constexpr (kRows > 0) {
    if (rows == kRows)
      AddOuter<kRows, kPacks, kKeep>(panels, a, lda, b, ldb, depths, sums, kept);
    else
      AddOuterOf<kRows - 1, kPacks, kKeep>(rows, panels, a, lda, b, ldb, depths, sums, kept);
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

/// Adds the kept columns of b, a panel at `kept`, to the sums of all rows of c.
template <int kRows, int kPacks>
CC_OUTLINED void AddKept(int rows, const float* a, const float* kept, int depths, int first_group,
                         float* sums) {
  constexpr int W = kRegisterWords * kPacks;
  const int groups = (rows + kRows - 1) / kRows;
  for (int g = first_group; g < groups; ++g) {
    const RowGroup group = RowGroupOf(rows, groups, g);
    AddOuterOf<kRows, kPacks, false>(group.rows, 1, a + group.first, rows, kept, W, depths,
                                     sums + group.first * W, nullptr);
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

/// Multiplies b as it is, in packs of kPacks times V columns. If there are more than kRows rows,
/// the first of them keep b for the others.
template <bool kTransposeA, int kRows, int kPacks, class T>
CC_OUTLINED void MultiplyByColumnsOfB(const ColumnRange& columns, const Product<T>& p) {
  constexpr int W = kRegisterWords * kPacks;
  const int rows = int(p.m), groups = (rows + kRows - 1) / kRows;
  const int depth = groups == 1 ? kStreams : kOuterDepth;
  alignas(64) float sums[2 * kSumFloats], kept[kOuterDepth * W], a[kOuterDepth * kMostProductRows];
  const Index wide = 2 * kSumFloats / rows / W * W;
  for (Index first = columns.begin; first < columns.end; first += wide) {
    const Index count = columns.end - first < wide ? columns.end - first : wide,
                whole = count / W * W;
    for (Index i = 0; i < (count + W - 1) / W * W * rows; ++i) sums[i] = 0;
    for (Index k = 0; k < p.k; k += depth) {
      const int depths = int(p.k - k < depth ? p.k - k : depth);
      TakeFactors<kTransposeA>(p, k, depths, a);
      const T* const b = p.b + k * p.ldb + first;
      if (groups == 1) {
        AddOuterOf<kRows, kPacks, false>(rows, whole / W, a, rows, b, p.ldb, depths, sums, nullptr);
      } else {
        for (Index j = 0; j < whole; j += W) {
          AddOuterOf<kRows, kPacks, true>(RowGroupOf(rows, groups, 0).rows, 1, a, rows, b + j,
                                          p.ldb, depths, sums + j * rows, kept);
          AddKept<kRows, kPacks>(rows, a, kept, depths, 1, sums + j * rows);
        }
      }
      if (whole == count) continue;
      for (int d = 0; d < depths; ++d) {
        for (int i = 0; i < W; ++i)
          kept[d * W + i] = whole + i < count ? Get(Load<1>(b + d * p.ldb + whole + i), 0) : 0.0f;
      }
      AddKept<kRows, kPacks>(rows, a, kept, depths, 0, sums + whole * rows);
    }
    StoreOuterSums<W>(p, first, count, sums);
  }
}

}  // namespace coconet
