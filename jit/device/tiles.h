#pragma once

// Matrix products by kernels. One of few rows comes before the phases of the kernel that takes it.
// Another works tile by tile, and signals each finished tile to all ranks; a concurrent kernel, on
// this rank or another, waits for the tiles that it reads. The product waits for no other kernel
// but one that gathers its rows, whose blocks are resident beside its own, so all of them end.

namespace coconet {

/// c[m, n] = op(a)[m, k] . op(b)[k, n], where op transposes or is the identity. Stored rows are
/// lda, ldb, ldc elements apart. Halves are summed in f32 and rounded once; 8-bit floats are summed
/// in f32, which T is then; zeros when k is 0.
template <class T, class A = T, class B = A>
struct Product {
  using Element = T;
  using OfA = A;
  using OfB = B;
  const A* a;
  const B* b;
  T* c;
  Index lda, ldb, ldc, m, n, k;
};
/// The matrices of an operand of several products, `step` elements apart, at most 2^31: product i
/// takes number i / each % count.
struct OperandMatrices {
  Index step;
  Divisor each, count;
};
CC_DEVICE int TakenBy(unsigned product, const OperandMatrices& of) {
  const Index turn = Quotient(product, of.each);
  return int(turn - Quotient(turn, of.count) * of.count.by);
}
/// `count` products of equal extents. Their results follow each other in c. `rows`: how many rows
/// of each are in use, the others may have any sums; null: all are.
template <class... T>
struct Products : Product<T...> {
  Index count;
  OperandMatrices of_a, of_b;
  const int* rows;
};
template <class... T>
CC_DEVICE Index RowsInUse(const Products<T...>& p, unsigned number) {
  if (p.rows == nullptr) return p.m;
  const int rows = p.rows[number];
  return rows < 0 ? 0 : rows < p.m ? rows : p.m;
}

/// What becomes of a product's elements. begin(lanes, row, column) issues the loads for as many
/// neighbours of a row of c, and returns what takes them: finish(made), a pack of Raw<T>. A thread
/// begins kInFlight packs before it finishes the first. ahead(row, column, count): the loads of so
/// many neighbours, at most kBroughtAhead, follow later. `packs`: kEpiloguePack neighbours from a
/// multiple of it on may be taken at once.
template <int kPacksInFlight, class F, class Ahead>
struct Epilogue {
  static constexpr int kInFlight = kPacksInFlight;
  bool packs;
  F begin;
  Ahead ahead;
};
constexpr int kEpiloguePack = kPacksAnywhere ? kRegisterWords : 8;

template <int kInFlight, class F, class Ahead>
CC_DEVICE Epilogue<kInFlight, F, Ahead> MakeEpilogue(bool packs, const F& begin,
                                                     const Ahead& ahead) {
  return {packs, begin, ahead};
}
/// Brings `count` elements nearer that are loaded later; 1 to kBroughtAhead.
constexpr int kBroughtAhead = 64;
template <class T>
CC_DEVICE void BringLines(const T* from, int count) {
  constexpr int kLine = 128 / int(sizeof(T));
  CC_UNROLL for (int i = 0; i < kBroughtAhead; i += kLine) if (i < count) PrefetchLine(from + i);
}
/// Stores the elements in c.
template <class T, class... Of>
CC_DEVICE auto StoreProduct(const Product<T, Of...>& p) {
  const bool packs =
      kPacksAnywhere || (u64(p.ldc) * sizeof(T) | reinterpret_cast<u64>(p.c)) % 16 == 0;
  const auto begin = [c = p.c, ldc = p.ldc](auto, Index row, Index column) CC_INLINE {
    auto* const to = reinterpret_cast<Raw<T>*>(c) + row * ldc + column;
    return [to](const auto& made) CC_INLINE { StoreRaw<kCached>(to, made); };
  };
  return MakeEpilogue<1>(packs, begin, [](Index, Index, int) {});
}

/// Computes the tile of a product that begins at (row, column): kSide rows and columns, fewer at
/// the ends; `epilogue` takes the elements, whose rows it counts from `above` on. All threads of
/// the block take part, and meet before they call it again. Defined in the dialect's
/// tile_product.h.
template <int kSide, bool kTransposeA, bool kTransposeB, class T, class... Of, class E>
CC_DEVICE void MultiplyTile(const Grid& grid, const Product<T, Of...>& p, Index row, Index column,
                            Index above, const E& epilogue);

/// As coconet/schedule/prologue.h has it.
constexpr int kSlabOfScales = 128;
/// The scales of an operand of 8-bit floats that lies along k: elements of line i (a row of a, a
/// column of b) and of slab s, kSlabOfScales along k, are multiplied by at[i / lines * ld + s /
/// slabs]; those of matrix j of Products by scales `step` elements further for each.
struct LineScales {
  const float* at;
  Index ld, step;
  Divisor lines;
  Index slabs;
};
/// The scales of both operands. kByColumn: columns of a tile may have different ones.
template <bool kByColumn>
struct BlockScales {
  LineScales a, b;
};
/// Neither has scales.
struct NoScales {};
template <class S>
constexpr bool kIsScaled = !kSame<S, NoScales>;

/// The operands of a product as tensor maps, by boxes of which a row has 128 bytes: so much k and
/// all lines of a tile where the operand lies along k, else 64 lines and 64 k. Those of Products
/// have three dimensions.
struct WideMaps {
  const TensorMap& a;
  const TensorMap& b;
};

/// As coconet/schedule/prologue.h has it.
constexpr int kMostProductRows = 64;

/// Computes all of c, which has at most kMostProductRows rows, by all blocks of the rank:
/// each computes some columns, and reads these of b from memory once. Defined in the dialect's
/// few_rows.h.
template <bool kTransposeA, bool kTransposeB, class T>
CC_DEVICE void MultiplyFewRows(const Grid& grid, const Product<T>& p);

/// The order in which tiles are needed: the rows of tiles form `slices` consecutive slices, which
/// are read concurrently, each from its begin. A slice has `rows` / 4096 rows of tiles, `rows` less
/// than 2^32; the last one has what is left. The order begins with row `first`; the rows before it
/// come last.
struct TileOrder {
  Index slices, rows, first;
};

/// The number of tiles that `extent` rows or columns take.
CC_DEVICE unsigned TilesAcross(Index extent, unsigned of_tile) {
  return unsigned((u64(extent) + of_tile - 1) / of_tile);
}

/// Calls f(row, column), in units of tiles, for this block's tiles of a matrix of `down` x `across`
/// tiles, at most FlagSlots::kMostTiles. Each round takes the next row of tiles of every slice.
/// Tiles of one column, which read the same columns of b, are consecutive.
template <class F>
CC_DEVICE void ForTiles(const Grid& grid, unsigned down, unsigned across, const TileOrder& order,
                        F&& f) {
  const unsigned slices = unsigned(order.slices), per = unsigned(order.rows);
  const auto first = [&](unsigned slice) {  // the slice's first row of tiles
    const unsigned row = slice < slices ? unsigned(u64(slice) * per >> 12) : down;
    return row < down ? row : down;
  };
  // Calls of(row) for each slice's row of a round, as long as it returns true.
  const auto for_slices = [&](unsigned round, auto&& of) CC_INLINE {
    unsigned row = round;
    CC_ROLLED for (unsigned slice = 0; slice < slices; ++slice) {
      const unsigned end = first(slice + 1);
      if (row < end && !of(row)) break;
      row = end + round;
    }
  };
  const unsigned begin = order.first < down ? unsigned(order.first) : 0;
  unsigned turn = unsigned(grid.BlockId());  // the next tile, counted from the first of the round
  CC_ROLLED for (unsigned round = 0, done = 0; done < down; ++round) {
    unsigned rows = 0;
    for_slices(round, [&](unsigned) {
      ++rows;
      return true;
    });
    CC_ROLLED for (; turn < rows * across; turn += unsigned(grid.GridSize())) {
      const unsigned column = turn / rows;
      unsigned before = turn - column * rows, row = 0;
      for_slices(round, [&](unsigned own) {
        row = own;
        return before-- > 0;
      });
      f(begin == 0 || row < down - begin ? row + begin : row - (down - begin), column);
    }
    turn -= rows * across;
    done += rows;
  }
}

/// The same for a product's tiles of kRows x kColumns.
template <int kRows, int kColumns, class... T, class F>
CC_DEVICE void ForTilesOf(const Grid& grid, const Product<T...>& p, const TileOrder& order, F&& f) {
  ForTiles(grid, TilesAcross(p.m, kRows), TilesAcross(p.n, kColumns), order, f);
}
/// The same product by product, from order.first on; tiles without rows in use come last.
template <int kRows, int kColumns, class... T, class F>
CC_DEVICE void ForTilesOf(const Grid& grid, const Products<T...>& p, const TileOrder& order,
                          F&& f) {
  const unsigned down = TilesAcross(p.m, kRows), across = TilesAcross(p.n, kColumns),
                 count = unsigned(p.count), first = unsigned(order.first);
  unsigned turn = unsigned(grid.BlockId());  // the next tile, counted from the product's first
  CC_ROLLED for (int pass = 0; pass < (p.rows == nullptr ? 1 : 2); ++pass) {
    CC_ROLLED for (unsigned i = 0; i < count; ++i) {
      const unsigned number = i + first < count ? i + first : i + first - count,
                     in_use = TilesAcross(RowsInUse(p, number), kRows),
                     begin = pass == 0 ? 0 : in_use, rows = pass == 0 ? in_use : down - in_use;
      CC_ROLLED for (; turn < rows * across; turn += unsigned(grid.GridSize()))
          f(number * down + begin + turn % rows, turn / rows);
      turn -= rows * across;
    }
  }
}

/// Where a row of tiles lies.
template <class P>
struct RowOfTiles {
  P product;        // its matrix product; with k = 0 if none of the tiles' rows is in use
  Index row;        // its first row in that product
  Index above;      // rows of the earlier products, so that the first row of c is above + row
  unsigned number;  // of the product
};
template <int kRows, class... T>
CC_DEVICE RowOfTiles<const Product<T...>&> FindRow(const Product<T...>& p, unsigned row) {
  return {p, Index(row) * kRows, 0, 0};
}
template <int kRows, class... T>
CC_DEVICE RowOfTiles<Product<T...>> FindRow(const Products<T...>& p, unsigned row) {
  const unsigned down = TilesAcross(p.m, kRows), number = row / down;
  const Index first = Index(row - number * down) * kRows;
  Product<T...> one = p;
  one.a += TakenBy(number, p.of_a) * p.of_a.step;
  one.b += TakenBy(number, p.of_b) * p.of_b.step;
  if (first >= RowsInUse(p, number)) one.k = 0;
  return {one, first, number * p.m, number};
}
template <class P>
constexpr bool kIsMany = false;
template <class... T>
constexpr bool kIsMany<Products<T...>> = true;

/// Where a product signals its tiles: each rank has a row of words per writer, one word per tile,
/// which holds an epoch like other flags (kernel_abi.h).
template <int kRanks>
struct TileFlags {
  unsigned* const* flags;  // [rank]
  Index row;               // words per row
  int rank;
  unsigned* epochs;  // [block]
};

/// Tells all ranks that a tile is stored, by one of `threads` threads each. All of the tile's
/// stores happened before.
template <int kRanks>
CC_DEVICE void SignalTile(const TileFlags<kRanks>& out, unsigned tile, unsigned epoch, int thread,
                          int threads) {
  CC_ROLLED for (int r = thread; r < kRanks; r += threads)
      StoreRelease(out.flags[r] + out.rank * out.row + tile, epoch);
}

/// No kernel beside the product takes its tiles.
struct NoTileFlags {};
/// No kernel beside the product takes its tiles, but it counts epochs: it awaits GatheredChunks.
struct OwnEpochs {
  unsigned* epochs;  // [block]
};
template <class Out>
constexpr bool kSignals = false;
template <int kRanks>
constexpr bool kSignals<TileFlags<kRanks>> = true;

/// The epoch of the product's tiles.
template <int kRanks>
CC_DEVICE unsigned NextEpoch(const Grid& grid, const TileFlags<kRanks>& out) {
  return out.epochs[grid.BlockId()] + 1;
}
CC_DEVICE unsigned NextEpoch(const Grid&, const NoTileFlags&) { return 0; }
CC_DEVICE unsigned NextEpoch(const Grid& grid, const OwnEpochs& out) {
  return out.epochs[grid.BlockId()] + 1;
}
CC_DEVICE void SignalTile(const NoTileFlags&, unsigned, unsigned, int, int) {}
CC_DEVICE void SignalTile(const OwnEpochs&, unsigned, unsigned, int, int) {}
/// Keeps the epoch for the next step, by one thread, when all tiles are signalled.
template <int kRanks>
CC_DEVICE void KeepEpoch(const Grid& grid, const TileFlags<kRanks>& out, unsigned epoch) {
  out.epochs[grid.BlockId()] = epoch;
}
CC_DEVICE void KeepEpoch(const Grid&, const NoTileFlags&, unsigned) {}
CC_DEVICE void KeepEpoch(const Grid& grid, const OwnEpochs& out, unsigned epoch) {
  out.epochs[grid.BlockId()] = epoch;
}

/// The first operand is in memory when the kernel begins.
struct NoChunks {};
/// The first operand is gathered by a kernel beside this one, which signals each chunk of all
/// ranks' slices (PublishBeside). kAliases: ranks store to it by multicast.
template <int kRanks, bool kAliases>
struct GatheredChunks {
  Control* control;
  const unsigned* flags;       // this rank's rows, one per writer
  Index row;                   // words of such a row
  Index first;                 // the word of chunk 0 in it
  Index reported;              // WaitFailure::slot of chunk 0
  Divisor extent, per, chunk;  // of the operand's Cut: row and per; elements of a chunk
  Index shift;                 // of the Cut
  Index in_row;                // chunks of a slice in a row of the Cut
  Index width;                 // elements of a row of the operand
  int step;                    // of the kernel that gathers
};
/// The number of the chunk that has element i of a row of the Cut, counted over all ranks.
template <int kRanks, bool kAliases>
CC_DEVICE unsigned ChunkOf(const GatheredChunks<kRanks, kAliases>& in, Index i) {
  const Index r = Quotient(i + in.shift, in.per);
  return unsigned(r * in.in_row + Quotient(i - BeginOf(in.per.by, in.shift, int(r)), in.chunk));
}
template <class In>
constexpr bool kAwaits = !kSame<In, NoChunks>;

/// Waits, as one of `threads` threads, until rows [begin, end) of the operand are stored. The
/// threads have to meet afterwards, and those that read the rows call FenceRows. The kernel and the
/// one that gathers are launched once per step each, so their epochs are equal. If a wait fails,
/// the product goes on: Control has the failure, and the step ends with it.
template <int kRanks, bool kAliases>
CC_DEVICE void AwaitRows(const GatheredChunks<kRanks, kAliases>& in, unsigned epoch, Index begin,
                         Index end, int thread, int threads) {
  const Index from = begin * in.width, to = end * in.width;
  bool ok = from < to;
  for (int pass = 0; pass < 2; ++pass) {  // as in WaitAll
    CC_ROLLED for (Index o = Quotient(from, in.extent), base = o * in.extent.by; ok && base < to;
                   ++o, base += in.extent.by) {
      const unsigned last = ChunkOf(in, (to - base < in.extent.by ? to - base : in.extent.by) - 1);
      CC_ROLLED for (unsigned i = ChunkOf(in, from > base ? from - base : 0) + unsigned(thread);
                     i <= last; i += unsigned(threads)) {
        const int r = int(i / unsigned(in.in_row));
        const Index id = i - r * in.in_row;
        const bool exists = BeginOf(in.per.by, in.shift, r) + id * in.chunk.by <
                            BeginOf(in.per.by, in.shift, r + 1);
        if (!exists || SharesCore(in.control, r) != (pass == 0)) continue;
        const Index flag = o * in.in_row + id;
        ok = ok && WaitFlag(in.control, in.flags + r * in.row + in.first + flag, epoch, r, in.step,
                            int(in.reported + flag));
      }
    }
  }
}
template <int kRanks, bool kAliases>
CC_DEVICE void FenceRows(const GatheredChunks<kRanks, kAliases>&) {
  if (kAliases) FenceAliases();
}

/// Waits for the rows of a tile, by all threads of the block.
template <int kRows, class... T, class In>
CC_DEVICE void AwaitRowsOfTile(const Grid& grid, const Product<T...>& p, unsigned row, const In& in,
                               unsigned epoch) {
  if constexpr (kAwaits<In>) {
    const Index begin = Index(row) * kRows, end = begin + kRows;
    AwaitRows(in, epoch, begin, end < p.m ? end : p.m, grid.ThreadId(), grid.BlockSize());
    grid.Sync();
    FenceRows(in);
  }
}

/// Computes all tiles of a Product or of Products, by all blocks, and signals each tile when
/// `epilogue` has taken its elements; `out`: TileFlags, OwnEpochs or NoTileFlags; `in`:
/// GatheredChunks, with one of the former two, or NoChunks.
template <int kSide, bool kTransposeA, bool kTransposeB, class P, class Out, class E,
          class In = NoChunks>
CC_DEVICE void MultiplyTiles(const Grid& grid, const P& p, const TileOrder& order, const Out& out,
                             const E& epilogue, const In& in = {}) {
  const unsigned epoch = NextEpoch(grid, out), across = TilesAcross(p.n, kSide);
  ForTilesOf<kSide, kSide>(grid, p, order, [&](unsigned row, unsigned column) {
    AwaitRowsOfTile<kSide>(grid, p, row, in, epoch);
    const auto at = FindRow<kSide>(p, row);
    MultiplyTile<kSide, kTransposeA, kTransposeB>(grid, at.product, at.row, Index(column) * kSide,
                                                  at.above, epilogue);
    grid.Sync();
    SignalTile(out, row * across + column, epoch, grid.ThreadId(), grid.BlockSize());
  });
  grid.Sync();
  if (grid.ThreadId() == 0) KeepEpoch(grid, out, epoch);
}

/// This rank's flags of the products of all ranks, for a kernel that reads them in rows
/// of `width` elements.
struct Tiles {
  const unsigned* flags;
  Index row;            // words per row of flags
  Index rows, columns;  // of a tile
  Index across;         // columns of a product
  Index width;
};

/// Waits until elements [begin, end) of the products of all ranks are stored; requires begin < end.
/// The product and this kernel are launched once per step each, so their epochs are equal.
template <int kRanks>
CC_DEVICE bool AwaitTiles(const Sync<kRanks>& s, const Grid& grid, const Tiles& t, Index begin,
                          Index end) {
  const Index first = begin / t.width, last = (end - 1) / t.width,
              across = (t.across + t.columns - 1) / t.columns;
  const bool within_row = first == last && t.width == t.across;
  const Index left = within_row ? begin % t.width / t.columns : 0,
              right = within_row ? (end - 1) % t.width / t.columns + 1 : across;
  const Index top = first / t.rows, tiles = (last / t.rows + 1 - top) * (right - left);
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
