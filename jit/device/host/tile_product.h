#pragma once

// One tile of a matrix product (tiles.h) by one thread.

namespace coconet {

/// Depth along k per pass: the sums and operands of a pass fit in a core's own cache.
constexpr int kTileDepth = 64;

/// to[k][i] = op(from)(first + i, depth + k) for i < lines and k < depths; zeros for other i.
template <int kSide, bool kAlongK, class T>
CC_DEVICE void PackOperand(const T* from, Index ld, Index first, int lines, Index depth, int depths,
                           float (&to)[kTileDepth][kSide]) {
  constexpr int V = kRegisterWords;
  for (int k = 0; k < depths; ++k) {
    int i = 0;
    if constexpr (!kAlongK) {
      const T* row = from + (depth + k) * ld + first;
      for (; i + V <= lines; i += V) StoreLanes<V>(&to[k][i], Load<V>(row + i));
    }
    for (; i < lines; ++i)
      to[k][i] = Get(
          Load<1>(from + (kAlongK ? (first + i) * ld + depth + k : (depth + k) * ld + first + i)),
          0);
    for (; i < kSide; ++i) to[k][i] = 0;
  }
}

/// sums += a . b for kRows rows from `row` on and all columns, in packs.
template <int kRows, int kSide>
CC_DEVICE void AddRows(const float (&a)[kTileDepth][kSide], const float (&b)[kTileDepth][kSide],
                       int row, int depths, float (&sums)[kSide][kSide]) {
  constexpr int V = kRegisterWords, kPacks = 2;
  for (int column = 0; column < kSide; column += V * kPacks) {
    Pack<float, V> x[kRows][kPacks];
    CC_UNROLL for (int i = 0; i < kRows; ++i) CC_UNROLL for (int j = 0; j < kPacks; ++j) x[i][j] =
        LoadLanes<V>(&sums[row + i][column + j * V]);
    for (int k = 0; k < depths; ++k) {
      CC_UNROLL for (int i = 0; i < kRows; ++i) {
        const Pack<float, V> of_row = Splat<V>(a[k][row + i]);
        CC_UNROLL for (int j = 0; j < kPacks; ++j) x[i][j] =
            x[i][j] + of_row * LoadLanes<V>(&b[k][column + j * V]);
      }
    }
    CC_UNROLL for (int i = 0; i < kRows; ++i) CC_UNROLL for (int j = 0; j < kPacks; ++j)
        StoreLanes<V>(&sums[row + i][column + j * V], x[i][j]);
  }
}

/// Multiplies what PackOperand has made by the scales of its lines.
template <int kSide>
CC_DEVICE void ScaleOperand(const LineScales& by, Index first, int lines, Index depth, int depths,
                            float (&to)[kTileDepth][kSide]) {
  for (int k = 0; k < depths; ++k) {
    const float* const at = by.at + (depth + k) / kSlabOfScales / by.slabs;
    for (int i = 0; i < lines; ++i) to[k][i] *= at[Quotient(first + i, by.lines) * by.ld];
  }
}

/// A tile of a product whose operands may have scales.
template <int kSide, bool kTransposeA, bool kTransposeB, class T, class... Of, class E, class S>
CC_DEVICE void MultiplyTileOf(const Product<T, Of...>& p, Index row, Index column, Index above,
                              const E& epilogue, const S& scales) {
  constexpr int V = kEpiloguePack, kRows = 4;
  const auto least = [](Index x, int most) { return x < most ? int(x) : most; };
  const int rows = least(p.m - row, kSide), columns = least(p.n - column, kSide);
  alignas(64) float a[kTileDepth][kSide], b[kTileDepth][kSide], sums[kSide][kSide] = {};
  for (Index depth = 0; depth < p.k; depth += kTileDepth) {
    const int depths = least(p.k - depth, kTileDepth);
    PackOperand<kSide, !kTransposeA>(p.a, p.lda, row, rows, depth, depths, a);
    PackOperand<kSide, kTransposeB>(p.b, p.ldb, column, columns, depth, depths, b);
    if constexpr (kIsScaled<S>) {
      ScaleOperand(scales.a, row, rows, depth, depths, a);
      ScaleOperand(scales.b, column, columns, depth, depths, b);
    }
    for (int i = 0; i < rows; i += kRows) AddRows<kRows>(a, b, i, depths, sums);
  }
  for (int i = 0; i < rows; ++i) {
    int j = 0;
    for (; epilogue.packs && j + V <= columns; j += V)
      epilogue.begin(Lanes<V>{}, above + row + i,
                     column + j)(ToRaw<T, V>(LoadLanes<V>(&sums[i][j])));
    for (; j < columns; ++j)
      epilogue.begin(Lanes<1>{}, above + row + i, column + j)(ToRaw<T, 1>(Splat<1>(sums[i][j])));
  }
}

template <int kSide, bool kTransposeA, bool kTransposeB, class T, class... Of, class E>
CC_DEVICE void MultiplyTile(const Grid&, const Product<T, Of...>& p, Index row, Index column,
                            Index above, const E& epilogue) {
  MultiplyTileOf<kSide, kTransposeA, kTransposeB>(p, row, column, above, epilogue, NoScales());
}

}  // namespace coconet
