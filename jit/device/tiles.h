#pragma once

// Matrix products by kernels. One of few rows comes before the phases of the kernel that takes it.
// Another works tile by tile, and signals each finished tile to all ranks; a concurrent kernel, on
// this rank or another, waits for the tiles that it reads. The product waits for no other kernel,
// so it ends whichever of the two starts first.

namespace coconet {

/// c[m, n] = op(a)[m, k] . op(b)[k, n], where op transposes or is the identity. Stored rows are
/// lda, ldb, ldc elements apart. Halves are summed in f32 and rounded once; zeros when k is 0.
template <class T>
struct Product {
  const T *a, *b;
  T* c;
  Index lda, ldb, ldc, m, n, k;
};

/// Computes the tile of c that begins at (row, column): kSide rows and columns, fewer at the ends.
/// All threads of the block take part. Defined in the dialect's tile_product.h.
template <int kSide, bool kTransposeA, bool kTransposeB, class T>
CC_DEVICE void MultiplyTile(const Grid& grid, const Product<T>& p, Index row, Index column);

/// As coconet/schedule/prologue.h has it.
constexpr int kMostProductRows = 64;

/// Computes all of c, which has at most kMostProductRows rows, by all blocks of the rank:
/// each computes some columns, and reads these of b from memory once. Defined in the dialect's
/// few_rows.h.
template <bool kTransposeA, bool kTransposeB, class T>
CC_DEVICE void MultiplyFewRows(const Grid& grid, const Product<T>& p);

/// The order in which tiles are needed: the product's elements form `slices` consecutive slices of
/// `slice` elements, which are read concurrently, each from its begin.
struct TileOrder {
  Index slices, slice;
};

/// Calls f(row, column), in units of tiles, for this block's tiles of an m x n matrix. Each round
/// takes the next row of tiles of every slice. Tiles of one column, which read the same columns of
/// b, are consecutive.
template <int kSide, class F>
CC_DEVICE void ForTiles(const Grid& grid, Index m, Index n, const TileOrder& order, F&& f) {
  const Index down = (m + kSide - 1) / kSide, across = (n + kSide - 1) / kSide;
  if (across == 0) return;
  const auto first = [&](Index slice) {  // the slice's first row of tiles
    const Index row = slice < order.slices ? slice * order.slice / n / kSide : down;
    return row < down ? row : down;
  };
  Index turn = grid.BlockId();  // this block's next tile, counted from the first of the round
  for (Index round = 0, done = 0; done < down; ++round) {
    const auto is_in = [&](Index slice) { return first(slice) + round < first(slice + 1); };
    Index rows = 0;
    for (Index slice = 0; slice < order.slices; ++slice) rows += is_in(slice);
    for (; turn < rows * across; turn += grid.GridSize()) {
      Index slice = 0, before = turn % rows;
      while (!is_in(slice) || before-- > 0) ++slice;
      f(first(slice) + round, turn / rows);
    }
    turn -= rows * across;
    done += rows;
  }
}

/// Where a product signals its tiles: each rank has a row of words per writer, one word per tile,
/// which holds an epoch like other flags (kernel_abi.h).
template <int kRanks>
struct TileFlags {
  unsigned* const* flags;  // [rank]
  Index row;               // words per row
  int rank;
  unsigned* epochs;  // [block]
};

/// Computes all tiles of a product, by all blocks, and signals each tile when it is stored.
template <int kSide, bool kTransposeA, bool kTransposeB, int kRanks, class T>
CC_DEVICE void MultiplyTiles(const Grid& grid, const Product<T>& p, const TileOrder& order,
                             const TileFlags<kRanks>& out) {
  const unsigned epoch = out.epochs[grid.BlockId()] + 1;
  const Index across = (p.n + kSide - 1) / kSide;
  ForTiles<kSide>(grid, p.m, p.n, order, [&](Index row, Index column) {
    MultiplyTile<kSide, kTransposeA, kTransposeB>(grid, p, row * kSide, column * kSide);
    grid.Sync();
    for (int r = grid.ThreadId(); r < kRanks; r += grid.BlockSize())
      StoreRelease(out.flags[r] + out.rank * out.row + row * across + column, epoch);
  });
  grid.Sync();
  if (grid.ThreadId() == 0) out.epochs[grid.BlockId()] = epoch;
}

/// This rank's flags of the products of all ranks, for a kernel that reads them in rows
/// of `width` elements.
struct Tiles {
  const unsigned* flags;
  Index row;      // words per row of flags
  Index side;     // rows and columns of a tile
  Index columns;  // of a product
  Index width;
};

/// Waits until elements [begin, end) of the products of all ranks are stored; requires begin < end.
/// The product and this kernel are launched once per step each, so their epochs are equal.
template <int kRanks>
CC_DEVICE bool AwaitTiles(const Sync<kRanks>& s, const Grid& grid, const Tiles& t, Index begin,
                          Index end) {
  const Index first = begin / t.width, last = (end - 1) / t.width,
              across = (t.columns + t.side - 1) / t.side;
  const bool within_row = first == last && t.width == t.columns;
  const Index left = within_row ? begin % t.width / t.side : 0,
              right = within_row ? (end - 1) % t.width / t.side + 1 : across;
  const Index top = first / t.side, tiles = (last / t.side + 1 - top) * (right - left);
  bool ok = true;
  for (int pass = 0; pass < 2; ++pass) {  // as in WaitAll
    for (Index i = grid.ThreadId(); i < kRanks * tiles; i += grid.BlockSize()) {
      const int r = int(i / tiles);
      if (SharesCore(s.control, r) != (pass == 0)) continue;
      const Index tile = (top + i % tiles / (right - left)) * across + left + i % (right - left);
      ok = ok && WaitFlag(s.control, t.flags + r * t.row + tile, s.epoch, r, s.step,
                          FlagSlots::Tile(tile));
    }
  }
  return grid.SyncAnd(ok);
}

}  // namespace coconet
