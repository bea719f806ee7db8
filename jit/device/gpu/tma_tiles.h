#pragma once

// Tiles of wide_tiles.h whose operands the tensor memory accelerator brings: a third warp group of
// a block loads boxes of both operands and signals tiles, while two multiply. Rows of both operands
// begin at multiples of 16 bytes, at which their lengths need not end.

#include "wide_tiles.h"

namespace coconet {

/// Threads of a block: two warp groups that multiply, and one that loads and signals.
constexpr int kTmaThreads = 3 * kWarpGroupThreads;
/// Registers of a thread of either, out of the 65,536 of a multiprocessor.
constexpr int kMultiplierRegisters = 224, kLoaderRegisters = 56;
/// What each has at first: the most of kTmaThreads.
constexpr int kEvenRegisters = 168;

/// A place in the ring of slabs, and the parity of the phase in which it is used.
struct WidePlace {
  int stage = 0;
  unsigned parity = 0;
  template <int kStages>
  CC_MEMBER void Next() {
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
};

/// A tile of a product; beyond the last one, a row of kNoTile.
struct WideTileAt {
  unsigned row, column;
};
constexpr unsigned kNoTile = ~0u;

/// What the warps of a block tell each other, behind its slabs.
template <int kStages>
struct WideBarriers {
  u64 full[kStages];          // the slab has come
  u64 empty[kStages];         // all warps that multiply have used it
  u64 stored;                 // all these warps have stored a tile
  u64 signalled;              // that has been seen
  WideTileAt tiles[kStages];  // whose slab is in this place
  WideTileAt last;            // that is stored
};

CC_DEVICE void AwaitPhase(u64* barrier, unsigned parity) {
  while (!IsOver(barrier, parity)) continue;
}

template <class Tile>
struct TmaTile : Tile {
  using Barriers = WideBarriers<Tile::kStages>;
  static constexpr int kWarps = Tile::kThreads / 32;
  static constexpr int kBarriersBegin = Tile::kSharedBytes;
  static constexpr int kSharedBytes = kBarriersBegin + int(sizeof(Barriers));
};

/// Loads the slab that begins at `k` of an operand's lines from `first` on; `matrix`: none, or the
/// number of the operand's matrix.
template <class S, int kLines, class... Matrix>
CC_DEVICE void LoadWideSlab(const TensorMap& map, int first, int k, unsigned char* to, u64* barrier,
                            Matrix... matrix) {
  if constexpr (S::kIsAlongK) {
    LoadBox(to, &map, k, first, matrix..., barrier);
  } else {
    CC_ROLLED for (int line = 0; line < kLines; line += 64)
        LoadBox(to + line * kWideRowBytes, &map, first + line, k, matrix..., barrier);
  }
}

/// By one thread, or where it awaits rows by the threads of its warp: loads all slabs of the
/// block's tiles, each as soon as its place is free.
template <class Tile, class A, class B, class P, class In>
CC_DEVICE void LoadWideTiles(const Grid& grid, const P& p, const WideMaps& maps,
                             const TileOrder& order, const In& in, unsigned epoch,
                             unsigned char* shared, typename Tile::Barriers& barriers) {
  const int lane = kAwaits<In> ? grid.ThreadId() % 32 : 0;
  WidePlace place;
  const auto begin_slab = [&](WideTileAt tile, int bytes) CC_INLINE {
    AwaitPhase(barriers.empty + place.stage, place.parity ^ 1);
    barriers.tiles[place.stage] = tile;
    ArriveAndExpect(barriers.full + place.stage, bytes);
  };
  // A product over nothing loads what lies beyond its operands: zeros.
  const int begin = p.k == 0 ? A::kDepth : 0;
  const auto load = [&](unsigned row, unsigned column) CC_INLINE {
    if constexpr (kAwaits<In>) {
      const Index begin = Index(row) * Tile::kRows, end = begin + Tile::kRows;
      AwaitRows(in, epoch, begin, end < p.m ? end : p.m, lane, 32);
      SyncWarp();
      if (lane != 0) return;
      FenceRows(in);
      FenceAsyncProxy();
    }
    const auto at = FindRow<Tile::kRows>(p, row);
    const int slabs = SlabsOf<typename P::OfA>(at.product.k);
    const int top = int(at.row), left = int(column) * Tile::kColumns;
    CC_ROLLED for (int slab = 0; slab < slabs; ++slab) {
      begin_slab({row, column}, Tile::kStageBytes);
      unsigned char* const to = shared + place.stage * Tile::kStageBytes;
      unsigned char* const of_b = to + Tile::kOperandBytesOfA;
      u64* const full = barriers.full + place.stage;
      const int k = begin + slab * A::kDepth;
      if constexpr (kIsMany<P>) {
        const bool some = at.product.k > 0;
        LoadWideSlab<A, Tile::kRows>(maps.a, top, k, to, full,
                                     some ? TakenBy(at.number, p.of_a) : -1);
        LoadWideSlab<B, Tile::kColumns>(maps.b, left, k, of_b, full,
                                        some ? TakenBy(at.number, p.of_b) : -1);
      } else {
        LoadWideSlab<A, Tile::kRows>(maps.a, top, k, to, full);
        LoadWideSlab<B, Tile::kColumns>(maps.b, left, k, of_b, full);
      }
      place.Next<Tile::kStages>();
    }
  };
  ForTilesOf<Tile::kRows, Tile::kColumns>(grid, p, order, load);
  if (lane == 0) begin_slab({kNoTile, 0}, 0);
}

/// By the threads of a warp: signals each of the block's tiles when it is stored.
template <class Tile, class Out>
CC_DEVICE void SignalWideTiles(int lane, unsigned across, const Out& out, unsigned epoch,
                               typename Tile::Barriers& barriers) {
  CC_ROLLED for (unsigned parity = 0;; parity ^= 1) {
    AwaitPhase(&barriers.stored, parity);
    const WideTileAt tile = barriers.last;
    SyncWarp();
    if (tile.row == kNoTile) return;
    if (lane == 0) Arrive(&barriers.signalled);
    SignalTile(out, tile.row * across + tile.column, epoch, lane, 32);
  }
}

/// By the threads of two warp groups: computes the block's tiles, and gives them to an epilogue.
/// kSignalled: a warp waits until it has taken them.
template <class Tile, class A, class B, bool kSignalled, class P, class S, class E>
CC_DEVICE void TakeWideTiles(const Grid& grid, const P& p, const S& scales, unsigned char* shared,
                             typename Tile::Barriers& barriers, const E& epilogue) {
  using T = typename P::Element;
  const int group = WarpGroup();
  const bool speaks = grid.ThreadId() % 32 == 0;  // for its warp
  WidePlace place;
  CC_ROLLED for (unsigned parity = 1;; parity ^= 1) {
    AwaitPhase(barriers.full + place.stage, place.parity);
    const WideTileAt tile = barriers.tiles[place.stage];
    SyncWarp();  // all lanes have read it when the one that speaks gives the place back
    typename Tile::Sums sums;
    if (tile.row != kNoTile) {
      const auto at = FindRow<Tile::kRows>(p, tile.row);
      const int slabs = SlabsOf<typename P::OfA>(at.product.k);
      BringAheadOfWide<Tile>(grid, at, tile.column, epilogue);
      SlabSums<Tile, S> sums_of_slabs(grid, scales, p, at, Index(tile.column) * Tile::kColumns,
                                      sums);
      u64* used = nullptr;  // of the slab before
      CC_ROLLED for (int slab = 0; slab < slabs; ++slab) {
        AwaitPhase(barriers.full + place.stage, place.parity);
        AddWideSlab<Tile, A, B>(group, shared + place.stage * Tile::kStageBytes,
                                sums_of_slabs.Of(sums), sums_of_slabs.kAdds && slab > 0);
        WgmmaWait<sums_of_slabs.kPending>();
        if (speaks && slab > 0) Arrive(used);
        used = barriers.empty + place.stage;
        place.Next<Tile::kStages>();
        sums_of_slabs.Take(sums, slab + 1 < slabs ? slab + 1 : -1);
      }
      WgmmaWait<0>();
      PinAllSums<Tile>(sums);
      if (speaks) Arrive(used);
      TakeWideTile<Tile, T>(grid, at, tile.column, sums, shared, epilogue);
    }
    if (kSignalled && speaks) {
      AwaitPhase(&barriers.signalled, parity);
      if (grid.ThreadId() == 0) barriers.last = tile;
      Arrive(&barriers.stored);
    }
    if (tile.row == kNoTile) return;
  }
}

/// Computes all tiles of a product, by all blocks of kTmaThreads threads with kBytes of dynamic
/// shared memory, and signals each tile when `epilogue` has taken its elements.
template <class Of, int kBytes, bool kTransposeA, bool kTransposeB, class P, class Out, class E,
          class In = NoChunks, class S = NoScales>
CC_DEVICE void MultiplyTmaTiles(const Grid& grid, const P& p, const WideMaps& maps,
                                const TileOrder& order, const Out& out, const E& epilogue,
                                const In& in = {}, const S& scales = {}) {
  using Tile = TmaTile<Of>;
  static_assert(Tile::kSharedBytes == kBytes);
  using A = WideSlab<typename P::OfA, Tile::kRows, !kTransposeA>;
  using B = WideSlab<typename P::OfB, Tile::kColumns, kTransposeB>;
  CC_DYNAMIC_SHARED(shared);
  auto& barriers = *reinterpret_cast<typename Tile::Barriers*>(shared + Tile::kBarriersBegin);
  if (grid.ThreadId() == 0) {
    CC_ROLLED for (int i = 0; i < Tile::kStages; ++i) {
      InitBarrier(barriers.full + i, 1);
      InitBarrier(barriers.empty + i, Tile::kWarps);
    }
    if (kSignals<Out>) {
      InitBarrier(&barriers.stored, Tile::kWarps);
      InitBarrier(&barriers.signalled, 1);
    }
    FenceBarriers();
    PrefetchMap(&maps.a);
    PrefetchMap(&maps.b);
  }
  const unsigned epoch = NextEpoch(grid, out);
  grid.Sync();
  const int warp = grid.ThreadId() / 32;
  if (WarpGroup() < 2) {
    RaiseRegisters<kMultiplierRegisters>();
    TakeWideTiles<Tile, A, B, kSignals<Out>>(grid, p, scales, shared, barriers, epilogue);
    return;
  }
  LowerRegisters<kLoaderRegisters>();
  if (kAwaits<In> ? warp == Tile::kWarps : grid.ThreadId() == Tile::kThreads)
    LoadWideTiles<Tile, A, B>(grid, p, maps, order, in, epoch, shared, barriers);
  if (warp != Tile::kWarps + 1) return;
  if constexpr (kSignals<Out>)
    SignalWideTiles<Tile>(grid.ThreadId() % 32, TilesAcross(p.n, Tile::kColumns), out, epoch,
                          barriers);
  if (grid.ThreadId() % 32 == 0) KeepEpoch(grid, out, epoch);
}

/// Gives all threads of a block that has made tiles as many registers as at first, for it to go on.
/// The loader may end before warps that multiply have raised theirs: all threads meet before it
/// takes back what it gave up.
CC_DEVICE void EvenRegisters() {
  constexpr int kBarrier = 1;
  SyncWarp();
  if (WarpGroup() < 2) {
    LowerRegisters<kEvenRegisters>();
    SyncThreads(kBarrier, kTmaThreads);
  } else {
    SyncThreads(kBarrier, kTmaThreads);
    RaiseRegisters<kEvenRegisters>();
  }
}

}  // namespace coconet
