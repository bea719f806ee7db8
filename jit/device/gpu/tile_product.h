#ifndef COCONET_JIT_DEVICE_GPU_TILE_PRODUCT_H_
#define COCONET_JIT_DEVICE_GPU_TILE_PRODUCT_H_

// One tile of a matrix product (tiles.h) by a block of kTileThreads threads: operands go through
// shared memory in stages, some of which are on their way while one is used. Halves are multiplied
// by the matrix units, f32 by the others, exactly.

#include "mma.h"

namespace coconet {

/// Of a block (jit/config/launch_shapes.h): eight warps.
constexpr int kTileThreads = 256;
constexpr int kStages = 3;
/// Of k that a stage has of each row or column: with tiles of 128 the stages take the 48 KiB that a
/// kernel has without asking.
constexpr int kStageBytes = 64;
/// What one copy moves, and one thread loads of a matrix.
constexpr int kPieceBytes = 16;

/// How a stage lies in shared memory, of kSide lines (rows of a, columns of b), in rows of what is
/// next to each other in the matrix: along k, or along the lines. The pieces of a row change
/// places, so that the same of eight rows, which matrix units take at once, or threads of f32, are
/// in different banks.
template <class T, int kSide, bool kAlongK>
struct TileStage {
  static constexpr bool kIsAlongK = kAlongK;
  static constexpr int kDepth = kStageBytes / int(sizeof(T));
  static constexpr int kPiece = kPieceBytes / int(sizeof(T));
  static constexpr int kRow = kAlongK ? kDepth : kSide;  // elements
  static constexpr int kPieces = kSide * kStageBytes / kPieceBytes;
  /// Bytes to a piece.
  CC_DEVICE int Offset(int row, int piece) {
    const int place = kAlongK         ? piece ^ ((row >> 1) & 3)
                      : kSame<T, f32> ? piece
                                      : piece ^ (row & 7);
    return row * kRow * int(sizeof(T)) + place * kPieceBytes;
  }
  /// Of f32: an element; the same of the sixteenth line after it is kSixteen elements behind it.
  CC_DEVICE const float* At(const unsigned char* stage, int line, int k) {
    const int row = kAlongK ? line : k, column = kAlongK ? k : line;
    return reinterpret_cast<const float*>(stage + Offset(row, column / kPiece)) + column % kPiece;
  }
  static constexpr int kSixteen = 16 * (kAlongK ? kDepth : 1);
};

/// What of an operand one tile takes.
template <class T>
struct TileOperand {
  const T* at;
  Index ld, first, lines, depth;  // lines from `first` on, of `lines`; k below `depth`
  bool aligned;                   // pieces are where copies can begin
};
template <class T>
CC_DEVICE TileOperand<Raw<T>> MakeTileOperand(const T* at, Index ld, Index first, Index lines,
                                              Index depth) {
  const bool aligned =
      reinterpret_cast<u64>(at) % kPieceBytes == 0 && ld * int(sizeof(T)) % kPieceBytes == 0;
  return {reinterpret_cast<const Raw<T>*>(at), ld, first, lines, depth, aligned};
}

/// Begins to bring k from `k` on; zeros beyond the ends. Unrolled, its addresses would take
/// registers of the sums.
template <class S, class T>
CC_DEVICE void BringStage(const Grid& grid, const TileOperand<T>& from, Index k,
                          unsigned char* to) {
  constexpr int kPiece = S::kPiece, kInRow = S::kRow / kPiece;
  _Pragma("unroll 1") for (int n = 0; n < S::kPieces / kTileThreads; ++n) {
    const int number = n * kTileThreads + grid.ThreadId(), row = number / kInRow,
              piece = number % kInRow;
    const Index line = from.first + (S::kIsAlongK ? row : piece * kPiece),
                depth = k + (S::kIsAlongK ? piece * kPiece : row);
    const Index left = S::kIsAlongK ? (line < from.lines ? from.depth - depth : 0)
                                    : (depth < from.depth ? from.lines - line : 0);
    const int count = left < 0 ? 0 : left < kPiece ? int(left) : kPiece;
    const T* const source =
        count == 0 ? from.at
                   : from.at + (S::kIsAlongK ? line * from.ld + depth : depth * from.ld + line);
    unsigned char* const target = to + S::Offset(row, piece);
    if (from.aligned) {
      CopyAsync16(target, source, count * int(sizeof(T)));
    } else {
      Pack<T, kPiece> values;
      CC_UNROLL for (int i = 0; i < kPiece; ++i)
          Put<T, kPiece>(values, i, i < count ? source[i] : T(0));
      StoreLanes<kPiece>(reinterpret_cast<T*>(target), values);
    }
  }
}

// ---- Sums of halves: each warp has kSide / 2 rows and kSide / 4 columns of the tile, in matrices
// of 16 x 8 ---

template <class T, int kSide>
struct TileSums {
  static constexpr int kDown = kSide / 32, kAcross = kSide / 32;
  float d[kDown][kAcross][4];

  CC_DEVICE int Row(const Grid& grid) { return grid.ThreadId() / 128 * (kSide / 2); }
  CC_DEVICE int Column(const Grid& grid) { return grid.ThreadId() / 32 % 4 * (kSide / 4); }
};

/// Four matrices of a stage: this thread gives row `row` of the one at (line, k).
template <class S>
CC_DEVICE void LoadStaged(unsigned (&r)[4], const unsigned char* stage, int line, int k, int row) {
  if constexpr (S::kIsAlongK)
    LoadMatrices(r, stage + S::Offset(line + row, k / S::kPiece));
  else
    LoadMatricesTransposed(r, stage + S::Offset(k + row, line / S::kPiece));
}

template <class A, class B, class T, int kSide>
CC_DEVICE void AddStage(const Grid& grid, const unsigned char* a, const unsigned char* b,
                        TileSums<T, kSide>& sums) {
  using Sums = TileSums<T, kSide>;
  const int lane = grid.ThreadId() % 32, matrix = lane / 8, row = lane % 8, low = 8 * (matrix % 2),
            high = 8 * (matrix / 2);
  CC_UNROLL for (int k = 0; k < A::kDepth; k += 16) {
    unsigned of_a[Sums::kDown][4], of_b[Sums::kAcross / 2][4];
    CC_UNROLL for (int i = 0; i < Sums::kDown; ++i)
        LoadStaged<A>(of_a[i], a, Sums::Row(grid) + 16 * i + low, k + high, row);
    CC_UNROLL for (int j = 0; j < Sums::kAcross / 2; ++j)
        LoadStaged<B>(of_b[j], b, Sums::Column(grid) + 16 * j + high, k + low, row);
    CC_UNROLL for (int i = 0; i < Sums::kDown; ++i) CC_UNROLL for (int j = 0; j < Sums::kAcross;
                                                                   ++j)
        MmaM16N8K16(sums.d[i][j], of_a[i], of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1], T());
  }
}

/// Two neighbours at once where both are there, and words.
template <class T, int kSide>
CC_DEVICE void StoreSums(const Grid& grid, const Product<T>& p, Index row, Index column,
                         const TileSums<T, kSide>& sums) {
  using Sums = TileSums<T, kSide>;
  const int lane = grid.ThreadId() % 32;
  const bool words = reinterpret_cast<u64>(p.c) % 4 == 0 && p.ldc % 2 == 0;
  CC_UNROLL for (int i = 0; i < 2 * Sums::kDown; ++i) {
    const Index r = row + Sums::Row(grid) + 8 * i + lane / 4;
    if (r >= p.m) continue;
    CC_UNROLL for (int j = 0; j < Sums::kAcross; ++j) {
      const Index c = column + Sums::Column(grid) + 8 * j + lane % 4 * 2;
      T* const to = p.c + r * p.ldc + c;
      Pack<float, 2> pair;
      CC_UNROLL for (int h = 0; h < 2; ++h) Put<float, 2>(pair, h, sums.d[i / 2][j][i % 2 * 2 + h]);
      if (words && c + 1 < p.n) {
        *reinterpret_cast<unsigned*>(to) = __builtin_bit_cast(unsigned, ToRaw<T, 2>(pair));
      } else {
        CC_UNROLL for (int h = 0; h < 2; ++h) if (c + h < p.n)
            Store<kCached>(to + h, Splat<1>(Get(pair, h)));
      }
    }
  }
}

// ---- Sums of f32: a thread has each sixteenth row and column of the tile ---

template <int kSide>
struct TileSums<f32, kSide> {
  static constexpr int kEach = kSide / 16;
  float d[kEach][kEach];
};

template <class A, class B, int kSide>
CC_DEVICE void AddStage(const Grid& grid, const unsigned char* a, const unsigned char* b,
                        TileSums<f32, kSide>& sums) {
  constexpr int kEach = TileSums<f32, kSide>::kEach;
  const int row = grid.ThreadId() / 16, column = grid.ThreadId() % 16;
  _Pragma("unroll 2") for (int k = 0; k < A::kDepth; ++k) {
    float of_a[kEach], of_b[kEach];
    CC_UNROLL for (int i = 0; i < kEach; ++i) of_a[i] = A::At(a, row, k)[i * A::kSixteen];
    CC_UNROLL for (int j = 0; j < kEach; ++j) of_b[j] = B::At(b, column, k)[j * B::kSixteen];
    CC_UNROLL for (int i = 0; i < kEach; ++i) CC_UNROLL for (int j = 0; j < kEach; ++j)
        sums.d[i][j] += of_a[i] * of_b[j];
  }
}

template <int kSide>
CC_DEVICE void StoreSums(const Grid& grid, const Product<f32>& p, Index row, Index column,
                         const TileSums<f32, kSide>& sums) {
  constexpr int kEach = TileSums<f32, kSide>::kEach;
  CC_UNROLL for (int i = 0; i < kEach; ++i) {
    const Index r = row + grid.ThreadId() / 16 + 16 * i;
    CC_UNROLL for (int j = 0; j < kEach; ++j) {
      const Index c = column + grid.ThreadId() % 16 + 16 * j;
      if (r < p.m && c < p.n) p.c[r * p.ldc + c] = sums.d[i][j];
    }
  }
}

template <int kSide, bool kTransposeA, bool kTransposeB, class T>
CC_DEVICE void MultiplyTile(const Grid& grid, const Product<T>& p, Index row, Index column) {
  using A = TileStage<T, kSide, !kTransposeA>;
  using B = TileStage<T, kSide, kTransposeB>;
  constexpr int kOperandBytes = kSide * kStageBytes;
  CC_SHARED(uint4, stages, kStages * 2 * kOperandBytes / kPieceBytes);
  const auto staged = [&](Index stage, int operand) {
    return reinterpret_cast<unsigned char*>(stages) +
           (stage % kStages * 2 + operand) * kOperandBytes;
  };
  const auto a = MakeTileOperand(p.a, p.lda, row, p.m, p.k),
             b = MakeTileOperand(p.b, p.ldb, column, p.n, p.k);
  const Index count = (p.k + A::kDepth - 1) / A::kDepth;
  const auto bring = [&](Index stage) {
    if (stage < count) {
      BringStage<A>(grid, a, stage * A::kDepth, staged(stage, 0));
      BringStage<B>(grid, b, stage * A::kDepth, staged(stage, 1));
    }
    CommitCopies();
  };
  TileSums<T, kSide> sums = {};
  CC_UNROLL for (int stage = 0; stage < kStages - 1; ++stage) bring(stage);
  for (Index stage = 0; stage < count; ++stage) {
    WaitCopies<kStages - 2>();
    grid.Sync();  // it is there for all threads, and all have used the one before, whose place the
                  // next takes
    bring(stage + kStages - 1);
    AddStage<A, B>(grid, staged(stage, 0), staged(stage, 1), sums);
  }
  WaitCopies<0>();
  grid.Sync();  // of the next tile others may bring stages
  StoreSums(grid, p, row, column, sums);
}

}  // namespace coconet

#endif  // COCONET_JIT_DEVICE_GPU_TILE_PRODUCT_H_
