#pragma once

// One tile of a matrix product (tiles.h) by a block of kTileThreads threads. Slabs of the operands
// are copied to shared memory ahead of their use. Halves are multiplied by tensor cores; f32 by
// ordinary instructions, without rounding to tf32.

#include "mma.h"

namespace coconet {

/// Threads per block: eight warps (jit/config/launch_shapes.h).
constexpr int kTileThreads = 256;
/// Slabs in shared memory; all but one may be in flight.
constexpr int kSlabs = 3;
/// A slab's depth along k, in bytes per row or column: with tiles of 128 the slabs take 48 KiB, all
/// shared memory that a kernel has by default.
constexpr int kSlabBytes = 64;
/// Bytes per copy, and per load of a matrix by one thread.
constexpr int kPieceBytes = 16;

/// The layout of a slab in shared memory: kSide lines (rows of a, columns of b), stored in rows of
/// elements that are contiguous in the matrix, along k or along the lines. Pieces are permuted
/// within a row, so that the same piece of eight rows, which tensor cores or threads of f32 load at
/// once, lies in different banks.
template <class T, int kSide, bool kAlongK>
struct TileSlab {
  static constexpr bool kIsAlongK = kAlongK;
  static constexpr int kDepth = kSlabBytes / int(sizeof(T));
  static constexpr int kPiece = kPieceBytes / int(sizeof(T));
  static constexpr int kRow = kAlongK ? kDepth : kSide;  // elements
  static constexpr int kPieces = kSide * kSlabBytes / kPieceBytes;
  /// The byte offset of a piece.
  CC_DEVICE int Offset(int row, int piece) {
    const int place = kAlongK         ? piece ^ ((row >> 1) & 3)
                      : kSame<T, f32> ? piece
                                      : piece ^ (row & 7);
    return row * kRow * int(sizeof(T)) + place * kPieceBytes;
  }
  /// f32 only: an element's address; the same k of the sixteenth line after it is
  /// kSixteen elements further.
  CC_DEVICE const float* At(const unsigned char* slab, int line, int k) {
    const int row = kAlongK ? line : k, column = kAlongK ? k : line;
    return reinterpret_cast<const float*>(slab + Offset(row, column / kPiece)) + column % kPiece;
  }
  static constexpr int kSixteen = 16 * (kAlongK ? kDepth : 1);
};

/// The part of an operand that one tile reads.
template <class T>
struct TileOperand {
  const T* at;
  Index ld, first, lines, depth;  // reads lines from `first` on, below `lines`, and k below `depth`
  bool aligned;                   // pieces are aligned to kPieceBytes
};
template <class T>
CC_DEVICE TileOperand<Raw<T>> MakeTileOperand(const T* at, Index ld, Index first, Index lines,
                                              Index depth) {
  const bool aligned =
      reinterpret_cast<u64>(at) % kPieceBytes == 0 && ld * int(sizeof(T)) % kPieceBytes == 0;
  return {reinterpret_cast<const Raw<T>*>(at), ld, first, lines, depth, aligned};
}

/// Starts copying the slab that begins at `k`, with zeros beyond the operand's ends. Not unrolled,
/// because its addresses would take registers from the sums.
template <class S, class T>
CC_DEVICE void BringSlab(const Grid& grid, const TileOperand<T>& from, Index k, unsigned char* to) {
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
      Store16(target, __builtin_bit_cast(uint4, values));
    }
  }
}

// ---- Sums of halves: a warp has kSide / 2 rows and kSide / 4 columns, in matrices of 16 x 8

template <class T, int kSide>
struct TileSums {
  static constexpr int kDown = kSide / 32, kAcross = kSide / 32;
  float d[kDown][kAcross][4];

  CC_DEVICE int Row(const Grid& grid) { return grid.ThreadId() / 128 * (kSide / 2); }
  CC_DEVICE int Column(const Grid& grid) { return grid.ThreadId() / 32 % 4 * (kSide / 4); }
};

/// Loads four matrices of a slab: this thread passes row `row` of the one that begins at (line, k).
template <class S>
CC_DEVICE void LoadFromSlab(unsigned (&r)[4], const unsigned char* slab, int line, int k, int row) {
  if constexpr (S::kIsAlongK)
    LoadMatrices(r, slab + S::Offset(line + row, k / S::kPiece));
  else
    LoadMatricesTransposed(r, slab + S::Offset(k + row, line / S::kPiece));
}

template <class A, class B, class T, int kSide>
CC_DEVICE void AddSlab(const Grid& grid, const unsigned char* a, const unsigned char* b,
                       TileSums<T, kSide>& sums) {
  using Sums = TileSums<T, kSide>;
  const int lane = grid.ThreadId() % 32, matrix = lane / 8, row = lane % 8, low = 8 * (matrix % 2),
            high = 8 * (matrix / 2);
  CC_UNROLL for (int k = 0; k < A::kDepth; k += 16) {
    unsigned of_a[Sums::kDown][4], of_b[Sums::kAcross / 2][4];
    CC_UNROLL for (int i = 0; i < Sums::kDown; ++i)
        LoadFromSlab<A>(of_a[i], a, Sums::Row(grid) + 16 * i + low, k + high, row);
    CC_UNROLL for (int j = 0; j < Sums::kAcross / 2; ++j)
        LoadFromSlab<B>(of_b[j], b, Sums::Column(grid) + 16 * j + high, k + low, row);
    CC_UNROLL for (int i = 0; i < Sums::kDown; ++i) CC_UNROLL for (int j = 0; j < Sums::kAcross;
                                                                   ++j)
        MmaM16N8K16(sums.d[i][j], of_a[i], of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1], T());
  }
}

/// Stores two neighbours as one word if both exist and the word is aligned.
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

// ---- Sums of f32: a thread has every sixteenth row and column of the tile

template <int kSide>
struct TileSums<f32, kSide> {
  static constexpr int kEach = kSide / 16;
  float d[kEach][kEach];
};

template <class A, class B, int kSide>
CC_DEVICE void AddSlab(const Grid& grid, const unsigned char* a, const unsigned char* b,
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
  using A = TileSlab<T, kSide, !kTransposeA>;
  using B = TileSlab<T, kSide, kTransposeB>;
  constexpr int kOperandBytes = kSide * kSlabBytes;
  CC_SHARED(uint4, slabs, kSlabs * 2 * kOperandBytes / kPieceBytes);
  const auto slab_at = [&](Index slab, int operand) {
    return reinterpret_cast<unsigned char*>(slabs) + (slab % kSlabs * 2 + operand) * kOperandBytes;
  };
  const auto a = MakeTileOperand(p.a, p.lda, row, p.m, p.k),
             b = MakeTileOperand(p.b, p.ldb, column, p.n, p.k);
  const Index count = (p.k + A::kDepth - 1) / A::kDepth;
  const auto bring = [&](Index slab) {
    if (slab < count) {
      BringSlab<A>(grid, a, slab * A::kDepth, slab_at(slab, 0));
      BringSlab<B>(grid, b, slab * A::kDepth, slab_at(slab, 1));
    }
    CommitCopies();
  };
  TileSums<T, kSide> sums = {};
  CC_UNROLL for (int slab = 0; slab < kSlabs - 1; ++slab) bring(slab);
  for (Index slab = 0; slab < count; ++slab) {
    WaitCopies<kSlabs - 2>();
    // All threads' copies of this slab are there, and all threads have used the previous slab,
    // whose place the next copies take.
    grid.Sync();
    bring(slab + kSlabs - 1);
    AddSlab<A, B>(grid, slab_at(slab, 0), slab_at(slab, 1), sums);
  }
  WaitCopies<0>();
  grid.Sync();  // before other threads copy slabs of the next tile
  StoreSums(grid, p, row, column, sums);
}

}  // namespace coconet
