#pragma once

// A matrix product of few rows (tiles.h): each warp, or each block, computes some of the columns.

namespace coconet {

/// Rows of a that a thread multiplies at once; the rows after them find b in a cache.
constexpr int kRowsAtOnce = 8;

/// An element of op(a).
template <bool kTransposeA, class T>
CC_DEVICE float ElementOfA(const Product<T>& p, Index row, Index k) {
  return Get(Load<1>(p.a + (kTransposeA ? k * p.lda + row : row * p.lda + k)), 0);
}

/// A warp multiplies rows of a with one row of b, each thread some of their elements.
template <bool kTransposeA, class T>
CC_DEVICE void MultiplyByRowsOfB(const Grid& grid, const Product<T>& p) {
  constexpr int P = 16 / int(sizeof(T));
  const int lane = grid.ThreadId() % 32, warps = grid.BlockSize() / 32;
  for (Index j = Index(grid.BlockId()) * warps + grid.ThreadId() / 32; j < p.n;
       j += Index(grid.GridSize()) * warps) {
    const T* const b = p.b + j * p.ldb;
    for (Index first = 0; first < p.m; first += kRowsAtOnce) {
      float sums[kRowsAtOnce] = {};
      for (Index k = lane * P; k < p.k; k += 32 * P) {
        Pack<float, P> of_b = Splat<P>(0.0f);
        if (k + P <= p.k) {
          of_b = LoadAnywhere<P>(b + k);
        } else {
          CC_UNROLL for (int i = 0; i < P; ++i) if (k + i < p.k) of_b.d[i] =
              Get(Load<1>(b + k + i), 0);
        }
        CC_UNROLL for (int row = 0; row < kRowsAtOnce; ++row) {
          if (first + row >= p.m) continue;
          CC_UNROLL for (int i = 0; i < P; ++i) if (k + i < p.k) sums[row] +=
              ElementOfA<kTransposeA>(p, first + row, k + i) * of_b.d[i];
        }
      }
      CC_UNROLL for (int row = 0; row < kRowsAtOnce; ++row) {
        if (first + row >= p.m) continue;
        float sum = sums[row];
        for (int distance = 16; distance > 0; distance /= 2)
          sum += ShuffleDown(0xffffffffu, sum, distance);
        if (lane == 0) Store<kCached>(p.c + (first + row) * p.ldc + j, Splat<1>(sum));
      }
    }
  }
}

/// A block has V columns per thread of a warp; its warps share the rows of b.
template <bool kTransposeA, class T>
CC_DEVICE void MultiplyByColumnsOfB(const Grid& grid, const Product<T>& p) {
  constexpr int V = 4 / int(sizeof(T)), kColumns = 32 * V, kMostWarps = CC_MAX_THREADS / 32;
  CC_SHARED(float, of_warps, kMostWarps* kColumns);
  const int thread = grid.ThreadId(), warp = thread / 32, at = thread % 32 * V,
            warps = grid.BlockSize() / 32;
  for (Index column = Index(grid.BlockId()) * kColumns; column < p.n;
       column += Index(grid.GridSize()) * kColumns) {
    for (Index first = 0; first < p.m; first += kRowsAtOnce) {
      float sums[kRowsAtOnce][V] = {};
      for (Index k = warp; k < p.k; k += warps) {
        float of_b[V];
        CC_UNROLL for (int v = 0; v < V; ++v) of_b[v] =
            column + at + v < p.n ? Get(Load<1>(p.b + k * p.ldb + column + at + v), 0) : 0.0f;
        CC_UNROLL for (int row = 0; row < kRowsAtOnce; ++row) {
          if (first + row >= p.m) continue;
          const float of_a = ElementOfA<kTransposeA>(p, first + row, k);
          CC_UNROLL for (int v = 0; v < V; ++v) sums[row][v] += of_a * of_b[v];
        }
      }
      CC_UNROLL for (int row = 0; row < kRowsAtOnce; ++row) {
        if (first + row >= p.m) continue;
        CC_UNROLL for (int v = 0; v < V; ++v) of_warps[warp * kColumns + at + v] = sums[row][v];
        grid.Sync();
        for (int i = thread; i < kColumns && column + i < p.n; i += grid.BlockSize()) {
          float sum = 0;
          for (int w = 0; w < warps; ++w) sum += of_warps[w * kColumns + i];
          Store<kCached>(p.c + (first + row) * p.ldc + column + i, Splat<1>(sum));
        }
        grid.Sync();  // the sums have been read
      }
    }
  }
}

template <bool kTransposeA, bool kTransposeB, class T>
CC_DEVICE void MultiplyFewRows(const Grid& grid, const Product<T>& p) {
  if constexpr (kTransposeB)
    MultiplyByRowsOfB<kTransposeA>(grid, p);
  else
    MultiplyByColumnsOfB<kTransposeA>(grid, p);
}

}  // namespace coconet
