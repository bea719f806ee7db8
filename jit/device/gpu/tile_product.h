#pragma once

// One tile of a matrix product (tiles.h) by a block of kTileThreads threads. Slabs of the operands
// are copied to shared memory ahead of their use. Halves are multiplied by tensor cores; f32 by
// ordinary instructions, without rounding to tf32.

#include "mma.h"
#include "slab_copies.h"
#include "turned_sums.h"

namespace coconet {

/// Threads per block: eight warps (jit/config/launch_shapes.h).
constexpr int kTileThreads = 256;
/// Slabs in shared memory; all but one may be in flight.
constexpr int kSlabs = 3;
/// A slab's depth along k, in bytes per row or column: with tiles of 128 the slabs take 48 KiB, all
/// shared memory that a kernel has by default.
constexpr int kSlabBytes = 64;

/// The layout of a slab in shared memory (slab_copies.h). Pieces are permuted within a row, so that
/// the same piece of eight rows, which tensor cores or threads of f32 load at once, lies in
/// different banks.
template <class T, int kSide, bool kAlongK>
struct TileSlab {
  static constexpr bool kIsAlongK = kAlongK;
  static constexpr int kLines = kSide, kDepth = kSlabBytes / int(sizeof(T)),
                       kPiece = kPieceBytes / int(sizeof(T)), kRow = kAlongK ? kDepth : kSide,
                       kPieces = kSide * kSlabBytes / kPieceBytes;
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

/// Brings the slab that begins at `k` of an operand whose rows are not of pieces, element by
/// element, with zeros beyond its ends.
template <class S, class T>
CC_DEVICE void BringElements(const Grid& grid, const SlabOperand<T>& of, Index k,
                             unsigned char* to) {
  constexpr int kPiece = S::kPiece, kInRow = S::kRow / kPiece;
  CC_ROLLED for (int n = grid.ThreadId(); n < S::kPieces; n += kTileThreads) {
    const int row = n / kInRow, piece = n % kInRow;
    const Index line = of.first + (S::kIsAlongK ? row : piece * kPiece),
                depth = k + (S::kIsAlongK ? piece * kPiece : row);
    const int count = S::kIsAlongK       ? line < of.lines ? Least(of.depth - depth, kPiece) : 0
                      : depth < of.depth ? Least(of.lines - line, kPiece)
                                         : 0;
    const T* const from = of.at + (S::kIsAlongK ? line * of.ld + depth : depth * of.ld + line);
    Pack<T, kPiece> values;
    CC_UNROLL for (int i = 0; i < kPiece; ++i)
        Put<T, kPiece>(values, i, i < count ? from[i] : T(0));
    Store16(to + S::Offset(row, piece), __builtin_bit_cast(uint4, values));
  }
}

template <class T>
CC_DEVICE SlabOperand<Raw<T>> SlabOperandOf(const T* at, Index ld, Index first, Index lines,
                                            Index depth) {
  return {reinterpret_cast<const Raw<T>*>(at), ld, first, lines, depth};
}

// ---- Sums of halves: a warp has kSide / 2 rows and kSide / 4 columns, in matrices of 16 x 8

template <class T, int kSide>
struct TileSums {
  static constexpr int kDown = kSide / 32, kAcross = kSide / 32;
  float d[kDown][kAcross][4];

  CC_DEVICE int Row(const Grid& grid) { return grid.ThreadId() / 128 * (kSide / 2); }
  CC_DEVICE int Column(const Grid& grid) { return grid.ThreadId() / 32 % 4 * (kSide / 4); }
};

/// Loads of a warp from a slab: of kCount groups of 16 lines and of 16 k at a time, as four
/// matrices of 8 x 8. Addresses are computed once: the slab's swizzle repeats after 16 stored rows.
template <class S, int kCount>
struct SlabLoads {
  static constexpr int kRowBytes = S::kRow * kPieceBytes / S::kPiece,
                       kBases = S::kIsAlongK ? S::kDepth / 16 : kCount;
  int base[kBases];  // along k: by 16 k, of the first group; else by group, of the first k

  /// The thread passes row `row` of the matrix that begins at (line, depth) in the first group.
  CC_MEMBER SlabLoads(int line, int depth, int row) {
    CC_UNROLL for (int n = 0; n < kBases; ++n) base[n] =
        S::kIsAlongK ? S::Offset(line + row, (16 * n + depth) / S::kPiece)
                     : S::Offset(depth + row, (line + 16 * n) / S::kPiece);
  }
  /// Loads group i at k.
  CC_MEMBER void Load(unsigned (&r)[4], const unsigned char* slab, int i, int k) const {
    if constexpr (S::kIsAlongK)
      LoadMatrices(r, slab + base[k / 16] + 16 * i * kRowBytes);
    else
      LoadMatricesTransposed(r, slab + base[i] + k * kRowBytes);
  }
};

/// Adds slabs to the sums of halves.
template <class A, class B, class T, int kSide>
struct SlabProducts {
  using Sums = TileSums<T, kSide>;
  SlabLoads<A, Sums::kDown> of_a;
  SlabLoads<B, Sums::kAcross / 2> of_b;

  CC_MEMBER explicit SlabProducts(const Grid& grid)
      : of_a(Sums::Row(grid) + grid.ThreadId() % 16 / 8 * 8, grid.ThreadId() % 32 / 16 * 8,
             grid.ThreadId() % 8),
        of_b(Sums::Column(grid) + grid.ThreadId() % 32 / 16 * 8, grid.ThreadId() % 16 / 8 * 8,
             grid.ThreadId() % 8) {}
  CC_MEMBER void Add(const unsigned char* a, const unsigned char* b, Sums& sums) const {
    CC_UNROLL for (int k = 0; k < A::kDepth; k += 16) {
      unsigned x[Sums::kDown][4], y[Sums::kAcross / 2][4];
      CC_UNROLL for (int i = 0; i < Sums::kDown; ++i) of_a.Load(x[i], a, i, k);
      CC_UNROLL for (int j = 0; j < Sums::kAcross / 2; ++j) of_b.Load(y[j], b, j, k);
      CC_UNROLL for (int i = 0; i < Sums::kDown; ++i)
          CC_UNROLL for (int j = 0; j < Sums::kAcross; ++j)
              MmaM16N8K16(sums.d[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1], T());
    }
  }
};

/// Gives the sums to an epilogue by packs, which warps turn in the memory of the slabs.
template <class T, int kSide, class E>
CC_DEVICE void TakeSums(const Grid& grid, const Product<T>& p, Index row, Index column, Index above,
                        const TileSums<T, kSide>& sums, unsigned char* shared, const E& epilogue) {
  using Sums = TileSums<T, kSide>;
  constexpr int kColumns = 8 * Sums::kAcross;
  const Index first = row + Sums::Row(grid), left = column + Sums::Column(grid);
  const int rows = Least(p.m - first, kSide), columns = Least(p.n - left, kColumns);
  const TurnedSums<T, kColumns> turned(grid, shared);
  CC_ROLLED for (int i = 0; i < Sums::kDown; ++i) {
    // Registers have no index, so each part of the sums has its own stores.
    CC_UNROLL for (int of = 0; of < Sums::kDown; ++of) {
      if (i != of) continue;
      CC_UNROLL for (int j = 0; j < Sums::kAcross; ++j) turned.Put(j, sums.d[of][j]);
    }
    TakeTurned(turned, epilogue, above + first + 16 * i, left, rows - 16 * i, columns);
  }
}

// ---- Sums of f32: a thread has every sixteenth row and column of the tile

template <int kSide>
struct TileSums<f32, kSide> {
  static constexpr int kEach = kSide / 16;
  float d[kEach][kEach];
};

template <class A, class B, int kSide>
struct SlabProducts<A, B, f32, kSide> {
  int row, column;

  CC_MEMBER explicit SlabProducts(const Grid& grid)
      : row(grid.ThreadId() / 16), column(grid.ThreadId() % 16) {}
  CC_MEMBER void Add(const unsigned char* a, const unsigned char* b,
                     TileSums<f32, kSide>& sums) const {
    constexpr int kEach = TileSums<f32, kSide>::kEach;
    _Pragma("unroll 2") for (int k = 0; k < A::kDepth; ++k) {
      float of_a[kEach], of_b[kEach];
      CC_UNROLL for (int i = 0; i < kEach; ++i) of_a[i] = A::At(a, row, k)[i * A::kSixteen];
      CC_UNROLL for (int j = 0; j < kEach; ++j) of_b[j] = B::At(b, column, k)[j * B::kSixteen];
      CC_UNROLL for (int i = 0; i < kEach; ++i) CC_UNROLL for (int j = 0; j < kEach; ++j)
          sums.d[i][j] += of_a[i] * of_b[j];
    }
  }
};

/// Gives the sums to an epilogue by packs, which the block turns in the memory of the slabs: 16
/// rows at a time.
template <int kSide, class E>
CC_DEVICE void TakeSums(const Grid& grid, const Product<f32>& p, Index row, Index column,
                        Index above, const TileSums<f32, kSide>& sums, unsigned char* shared,
                        const E& epilogue) {
  constexpr int kEach = TileSums<f32, kSide>::kEach, kPieces = kSide / kTurnedPack;
  const int thread = grid.ThreadId(), rows = Least(p.m - row, kSide),
            columns = Least(p.n - column, kSide);
  float* const turn = reinterpret_cast<float*>(shared);
  CC_ROLLED for (int i = 0; i < kEach; ++i) {
    CC_UNROLL for (int of = 0; of < kEach; ++of) {
      if (i != of) continue;
      CC_UNROLL for (int j = 0; j < kEach; ++j) turn[thread / 16 * kSide + thread % 16 + 16 * j] =
          sums.d[of][j];
    }
    grid.Sync();
    const int down = Least(rows - 16 * i, 16);
    const Index first = above + row + 16 * i;
    if (epilogue.packs && columns == kSide) {
      const int r = thread / kPieces, c = thread % kPieces * kTurnedPack;
      if (r < down)
        epilogue.begin(Lanes<kTurnedPack>{}, first + r,
                       column + c)(LoadLanes<kTurnedPack>(turn + r * kSide + c));
    } else {
      CC_ROLLED for (int n = thread; n < 16 * kSide; n += kTileThreads) {
        const int r = n / kSide, c = n % kSide;
        if (r < down && c < columns)
          epilogue.begin(Lanes<1>{}, first + r, column + c)(Splat<1>(turn[n]));
      }
    }
    grid.Sync();
  }
}

template <int kSide, bool kTransposeA, bool kTransposeB, class T, class... Of, class E>
CC_DEVICE void MultiplyTile(const Grid& grid, const Product<T, Of...>& p, Index row, Index column,
                            Index above, const E& epilogue) {
  static_assert(kSame<typename Product<T, Of...>::OfA, T>);  // warp groups take others
  using A = TileSlab<T, kSide, !kTransposeA>;
  using B = TileSlab<T, kSide, kTransposeB>;
  constexpr int kOperandBytes = kSide * kSlabBytes;
  CC_SHARED(uint4, slabs, kSlabs * 2 * kOperandBytes / kPieceBytes);
  const auto slab_at = [&](int slab, int operand) {
    return reinterpret_cast<unsigned char*>(slabs) +
           (unsigned(slab) % kSlabs * 2 + operand) * kOperandBytes;
  };
  const auto of_a = SlabOperandOf(p.a, p.lda, row, p.m, p.k),
             of_b = SlabOperandOf(p.b, p.ldb, column, p.n, p.k);
  SlabCopies<A, kTileThreads, Raw<T>> copies_of_a(grid, of_a);
  SlabCopies<B, kTileThreads, Raw<T>> copies_of_b(grid, of_b);
  const bool of_pieces =
      of_a.template IsOfPieces<A::kIsAlongK>() && of_b.template IsOfPieces<B::kIsAlongK>();
  const int count = int((u64(p.k) + A::kDepth - 1) / A::kDepth);
  const auto bring = [&](int slab) CC_INLINE {
    const Index k = Index(slab) * A::kDepth;
    if (slab < count && of_pieces) {
      const int depth = Least(p.k - k, A::kDepth);
      copies_of_a.Bring(slab_at(slab, 0), depth);
      copies_of_b.Bring(slab_at(slab, 1), depth);
    } else if (slab < count) {
      BringElements<A>(grid, of_a, k, slab_at(slab, 0));
      BringElements<B>(grid, of_b, k, slab_at(slab, 1));
    }
    CommitCopies();
  };
  BringAhead<kSide, kSide>(grid, epilogue, above + row, column, Least(p.m - row, kSide),
                           Least(p.n - column, kSide), kTileThreads);
  TileSums<T, kSide> sums = {};
  const SlabProducts<A, B, T, kSide> products(grid);
  CC_ROLLED for (int slab = 1 - kSlabs; slab < count; ++slab) {
    if (slab >= 0) {
      WaitCopies<kSlabs - 2>();
      // All threads' copies of this slab are there, and all threads have used the previous slab,
      // whose place the next copies take.
      grid.Sync();
    }
    bring(slab + kSlabs - 1);
    if (slab >= 0) products.Add(slab_at(slab, 0), slab_at(slab, 1), sums);
  }
  WaitCopies<0>();
  grid.Sync();  // before other threads turn sums in these slabs, or copy those of the next tile
  TakeSums(grid, p, row, column, above, sums, slab_at(0, 0), epilogue);
}

}  // namespace coconet
