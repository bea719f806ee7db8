#ifndef COCONET_JIT_DEVICE_TILES_H_
#define COCONET_JIT_DEVICE_TILES_H_

// A matrix product that works tile by tile and tells all ranks of each tile that it is there; and
// how a kernel that runs beside it, of this rank or another, waits for the tiles that it needs. The
// product waits for nobody, so it comes to its end whichever of the two was started first.

namespace coconet {

/// c[m, n] = op(a)[m, k] . op(b)[k, n], where op transposes or does nothing; rows as stored are
/// lda, ldb, ldc elements apart. Halves are summed in f32 and rounded once; without k, zeros.
template <class T>
struct Product {
  const T *a, *b;
  T* c;
  Index lda, ldb, ldc, m, n, k;
};

/// The tile of c that begins at (row, column), of kSide rows and columns, less at the ends; by all
/// threads of the block. In the dialect's tile_product.h.
template <int kSide, bool kTransposeA, bool kTransposeB, class T>
CC_DEVICE void MultiplyTile(const Grid& grid, const Product<T>& p, Index row, Index column);

/// The order in which tiles are wanted: the product's elements are cut into `slices` of `slice`
/// elements, one behind the other, which are read at once, each from its begin.
struct TileOrder {
  Index slices, slice;
};

/// f(row, column), in tiles, for those of an m x n matrix that are this block's. In each round
/// comes the next row of tiles of every slice; tiles below each other, which take the same columns
/// of b, come one after the other.
template <int kSide, class F>
CC_DEVICE void ForTiles(const Grid& grid, Index m, Index n, const TileOrder& order, F&& f) {
  const Index down = (m + kSide - 1) / kSide, across = (n + kSide - 1) / kSide;
  if (across == 0) return;
  const auto first = [&](Index slice) {  // row of tiles of a slice
    const Index row = slice < order.slices ? slice * order.slice / n / kSide : down;
    return row < down ? row : down;
  };
  Index turn = grid.BlockId();  // the next of this block's tiles, from the first of the round
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

/// Where a product tells the ranks of its tiles: on each rank a row of words a writer, one a tile,
/// of epochs as other flags (kernel_abi.h).
template <int kRanks>
struct TileFlags {
  unsigned* const* flags;  // [rank]
  Index row;               // words a row
  int rank;
  unsigned* epochs;  // [block]
};

/// All tiles of a product, by all blocks. Whoever finds the flag of a tile has the tile.
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

/// The flags of the products of all ranks, here, for a kernel that goes over rows of `width`
/// elements, those of the products.
struct Tiles {
  const unsigned* flags;
  Index row;      // words a row
  Index side;     // rows and columns of a tile
  Index columns;  // of a product
  Index width;
};

/// Returns when elements [begin, end), which are some, of the products of all ranks are there. The
/// product and this kernel are launched once a step each, so their epochs are the same.
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

#endif  // COCONET_JIT_DEVICE_TILES_H_
