#pragma once

// Matrix products of halves and of 8-bit floats by warp groups (wgmma.h), tile by tile: as tiles.h
// has it, for GPUs of sm_90a. Operands are copied to shared memory slab by slab along k, in
// swizzled rows of 128 bytes, as far ahead as there is room. Pieces of 16 bytes are copied at once,
// so rows of both operands begin at multiples of 16 bytes. 8-bit floats lie along k in both.

#include "scaled_sums.h"
#include "slab_copies.h"
#include "turned_sums.h"
#include "wgmma.h"

namespace coconet {

constexpr int kWarpGroupThreads = 128;
constexpr int kWideRowBytes = 128;
/// A slab's depth along k: a row, of halves or of 8-bit floats. And that of one product.
template <class T>
constexpr int kWideDepth = kWideRowBytes / int(sizeof(Raw<T>));
constexpr int kProductsOfSlab = 4;
static_assert(kWideDepth<f8e4m3> == kSlabOfScales);
/// Eight rows of a slab, after which the swizzle repeats; sixty-four rows.
constexpr int kWideBlockBytes = 8 * kWideRowBytes, kWideAtomBytes = 64 * kWideRowBytes;

/// A tile of kTileRows x kTileColumns by two warp groups, of which each has half of the rows, with
/// kTileStages slabs in shared memory.
template <int kTileRows, int kTileColumns, int kTileStages>
struct WideTile {
  static constexpr int kRows = kTileRows, kColumns = kTileColumns, kStages = kTileStages;
  static constexpr int kThreads = 2 * kWarpGroupThreads;
  /// Products of 64 rows that each warp group makes.
  static constexpr int kDown = kRows / 128;
  static_assert(kDown == 1 || kDown == 2);
  static constexpr int kOperandBytesOfA = kRows * kWideRowBytes,
                       kStageBytes = (kRows + kColumns) * kWideRowBytes;
  /// What warps turn at once: 16 rows of kWideRowBytes.
  static constexpr int kTurnBegin = kStages * kStageBytes,
                       kSharedBytes = kTurnBegin + kThreads / 32 * 16 * kWideRowBytes;
  /// Sums of a thread: of kDown products, each of 64 rows.
  struct Sums {
    float d[kDown][kColumns / 2];
  };
};

/// The slabs of a product over k; one over nothing has a slab of zeros.
template <class T>
CC_DEVICE int SlabsOf(Index k) {
  return k == 0 ? 1 : int((u64(k) + kWideDepth<T> - 1) / kWideDepth<T>);
}

// ---- Operands in shared memory

/// An operand's slab as warp groups take it (slab_copies.h).
template <class T, int kSlabLines, bool kAlongK>
struct WideSlab {
  using Element = T;
  static constexpr bool kIsAlongK = kAlongK;
  static_assert(kAlongK || kHalf<T>);
  static constexpr int kLines = kSlabLines, kDepth = kWideDepth<T>, kRow = kDepth;
  CC_DEVICE int Offset(int row, int piece) {
    return row * kWideRowBytes + (piece ^ row % 8) * kPieceBytes;
  }
  /// From one product to the next, in bytes; from 64 lines to the next.
  static constexpr int kStep = (kAlongK ? kWideRowBytes : kDepth * kWideRowBytes) / kProductsOfSlab,
                       kLeading = kAlongK ? 0 : kWideAtomBytes;
  CC_DEVICE SharedMatrix MatrixAt(const unsigned char* at) {
    return MakeSharedMatrix(at, kLeading, kWideBlockBytes);
  }
};

/// Keeps the compiler from moving accesses of the sums across it. A loop over the products would
/// keep the sums on the stack.
template <class Tile>
CC_DEVICE void PinAllSums(typename Tile::Sums& sums) {
  PinSums(sums.d[0]);
  if constexpr (Tile::kDown > 1) PinSums(sums.d[1]);
}

/// Begins to add a slab's products to the sums of warp group `group`, or to make them the sums.
template <class Tile, class A, class B>
CC_DEVICE void AddWideSlab(int group, const unsigned char* slab, typename Tile::Sums& sums,
                           bool adds) {
  constexpr typename A::Element type_of_a{};
  constexpr typename B::Element type_of_b{};
  PinAllSums<Tile>(sums);
  WgmmaFence();
  const SharedMatrix a = A::MatrixAt(slab + group * Tile::kDown * kWideAtomBytes),
                     b = B::MatrixAt(slab + Tile::kOperandBytesOfA);
  CC_UNROLL for (int k = 0; k < kProductsOfSlab; ++k) {
    const SharedMatrix of_a = Advanced(a, k * A::kStep), of_b = Advanced(b, k * B::kStep);
    const bool add = adds || k > 0;
    Wgmma<!A::kIsAlongK, !B::kIsAlongK>(sums.d[0], of_a, of_b, add, type_of_a, type_of_b);
    if constexpr (Tile::kDown > 1)
      Wgmma<!A::kIsAlongK, !B::kIsAlongK>(sums.d[1], Advanced(of_a, kWideAtomBytes), of_b, add,
                                          type_of_a, type_of_b);
  }
  WgmmaCommit();
}

/// Computes the sums of the tile of `all` that begins at (at.row, column), by all threads of the
/// block.
template <class Tile, class A, class B, class P, class One, class S>
CC_DEVICE void SumWideTile(const Grid& grid, const P& all, const RowOfTiles<One>& at, Index column,
                           const S& scales, unsigned char* shared, typename Tile::Sums& sums) {
  const auto& p = at.product;
  SlabCopies<A, Tile::kThreads, typename P::OfA> of_a(grid, {p.a, p.lda, at.row, p.m, p.k});
  SlabCopies<B, Tile::kThreads, typename P::OfB> of_b(grid, {p.b, p.ldb, column, p.n, p.k});
  SlabSums<Tile, S> slabs(grid, scales, all, at, column, sums);
  const int count = SlabsOf<typename P::OfA>(p.k);
  int last = int(p.k - Index(count - 1) * A::kDepth);  // the depth of the last slab
  KeepComputed(last);
  const auto stage_at = [&](int slab) { return shared + slab % Tile::kStages * Tile::kStageBytes; };
  const auto bring = [&](int slab) {
    if (slab < count) {
      const int depth = slab + 1 < count ? A::kDepth : last;
      of_a.Bring(stage_at(slab), depth);
      of_b.Bring(stage_at(slab) + Tile::kOperandBytesOfA, depth);
    }
    CommitCopies();
  };
  const int group = WarpGroup();
  // Products are read until the next slab's have begun, so one slab's place is neither read nor
  // written.
  constexpr int kAhead = Tile::kStages - 2;
  CC_ROLLED for (int slab = -kAhead; slab < count; ++slab) {
    if (slab >= 0) {
      WaitCopies<kAhead - 1>();
      FenceSharedForAsyncProxy();
      // All threads' copies of this slab are there, and the products of the slab before the last
      // have ended.
      grid.Sync();
      AddWideSlab<Tile, A, B>(group, stage_at(slab), slabs.Of(sums), slabs.kAdds && slab > 0);
    }
    bring(slab + kAhead);
    WgmmaWait<slabs.kPending>();
    if (slab >= 0) slabs.Take(sums, slab + 1 < count ? slab + 1 : -1);
  }
  WgmmaWait<0>();
  WaitCopies<0>();
  PinAllSums<Tile>(sums);
}

// ---- What becomes of the sums

/// What a warp turns of a tile's sums at once, rounded to T.
template <class T>
using WideTurn = TurnedSums<T, kWideRowBytes / int(sizeof(Raw<T>))>;
template <class T>
constexpr int kTurnColumns = WideTurn<T>::kPieces * WideTurn<T>::kPiece;
template <class Tile, class T>
constexpr int kTurnsAcross = Tile::kColumns / kTurnColumns<T>;

/// Puts sums where the warp turns them; halves by the thread's row of matrices, `row` bytes behind
/// `shared`.
template <class T>
CC_DEVICE void PutColumns(const WideTurn<T>&, unsigned char* shared, int row, const float* d) {
  CC_UNROLL for (int j = 0; j < kTurnColumns<T> / 16; ++j) {
    unsigned halves[4];
    CC_UNROLL for (int i = 0; i < 4; ++i) halves[i] =
        HalvesOf<T>(d[8 * j + 2 * i], d[8 * j + 2 * i + 1]);
    StoreMatrices(shared + (row ^ 32 * j), halves);
  }
}
CC_DEVICE void PutColumns(const WideTurn<f32>& turned, unsigned char*, int, const float* d) {
  CC_UNROLL for (int j = 0; j < kTurnColumns<f32> / 8; ++j) turned.Put(unsigned(j), d + 4 * j);
}

/// Puts turn `turn` of the sums where the warp turns them. Registers have no index, so each turn
/// has its own stores.
template <class Tile, int kTurn = 0, class T>
CC_DEVICE void PutTurn(const WideTurn<T>& turned, unsigned char* shared, int row,
                       const typename Tile::Sums& sums, int turn) {
  constexpr int kAcross = kTurnsAcross<Tile, T>;
  if (turn == kTurn)
    PutColumns(turned, shared, row,
               sums.d[kTurn / kAcross] + kTurn % kAcross * (kTurnColumns<T> / 2));
  else if constexpr (kTurn + 1 < Tile::kDown * kAcross)
    PutTurn<Tile, kTurn + 1>(turned, shared, row, sums, turn);
}

template <class Tile, class P, class E>
CC_DEVICE void BringAheadOfWide(const Grid& grid, const RowOfTiles<P>& at, unsigned tile_column,
                                const E& epilogue) {
  const Index column = Index(tile_column) * Tile::kColumns;
  BringAhead<Tile::kRows, Tile::kColumns>(
      grid, epilogue, at.above + at.row, column, Least(at.product.m - at.row, Tile::kRows),
      Least(at.product.n - column, Tile::kColumns), Tile::kThreads);
}

/// Gives the tile whose sums are given to an epilogue, by the threads of two warp groups.
template <class Tile, class T, class P, class E>
CC_DEVICE void TakeWideTile(const Grid& grid, const RowOfTiles<P>& at, unsigned tile_column,
                            const typename Tile::Sums& sums, unsigned char* shared,
                            const E& epilogue) {
  const Index row = at.above + at.row, column = Index(tile_column) * Tile::kColumns;
  const int rows = Least(at.product.m - at.row, Tile::kRows),
            columns = Least(at.product.n - column, Tile::kColumns);
  constexpr int kAcross = kTurnsAcross<Tile, T>;
  const WideTurn<T> turned(grid, shared + Tile::kTurnBegin);
  const int warp = int(unsigned(grid.ThreadId()) / 32);
  CC_ROLLED for (int turn = 0; turn < Tile::kDown * kAcross; ++turn) {
    const int product = warp / 4 * Tile::kDown + turn / kAcross,
              first = (product * 4 + warp % 4) * 16, left = turn % kAcross * kTurnColumns<T>;
    int row_of_matrices = int(turned.RowOfMatrices() - shared);
    KeepComputed(row_of_matrices);  // for the stores of all turns
    PutTurn<Tile>(turned, shared, row_of_matrices, sums, turn);
    TakeTurned(turned, epilogue, row + first, column + left, rows - first, columns - left);
  }
}

/// Computes all tiles of a product, by all blocks of Tile::kThreads threads with kBytes of dynamic
/// shared memory, and signals each tile when `epilogue` has taken its elements.
template <class Tile, int kBytes, bool kTransposeA, bool kTransposeB, class P, class Out, class E,
          class In = NoChunks, class S = NoScales>
CC_DEVICE void MultiplyWideTiles(const Grid& grid, const P& p, const TileOrder& order,
                                 const Out& out, const E& epilogue, const In& in = {},
                                 const S& scales = {}) {
  static_assert(Tile::kSharedBytes == kBytes);
  using A = WideSlab<typename P::OfA, Tile::kRows, !kTransposeA>;
  using B = WideSlab<typename P::OfB, Tile::kColumns, kTransposeB>;
  CC_DYNAMIC_SHARED(shared);
  const unsigned epoch = NextEpoch(grid, out), across = TilesAcross(p.n, Tile::kColumns);
  const auto make = [&](unsigned row, unsigned column) {
    const auto at = FindRow<Tile::kRows>(p, row);
    typename Tile::Sums sums;
    BringAheadOfWide<Tile>(grid, at, column, epilogue);
    AwaitRowsOfTile<Tile::kRows>(grid, p, row, in, epoch);
    SumWideTile<Tile, A, B>(grid, p, at, Index(column) * Tile::kColumns, scales, shared, sums);
    TakeWideTile<Tile, typename P::Element>(grid, at, column, sums, shared, epilogue);
    grid.Sync();
    SignalTile(out, row * across + column, epoch, grid.ThreadId(), grid.BlockSize());
  };
  ForTilesOf<Tile::kRows, Tile::kColumns>(grid, p, order, make);
  grid.Sync();
  if (grid.ThreadId() == 0) KeepEpoch(grid, out, epoch);
}

}  // namespace coconet
