#pragma once

// The blocks that ranks exchange (all-to-all) when a tensor's slicing changes from one dimension to
// another, and the columns of a tensor that a library moves by themselves.

namespace coconet {

/// A tensor [outer, low, middle, high, inner]. A rank's storage is sliced along one of low and
/// high, `kept`, and whole along the other, `cut`. Block k of n holds this rank's part of `kept`
/// and rank k's part of `cut`, both padded to `per`.
struct BlockedDim {
  Index extent, per, shift;
};
struct Blocks {
  Index outer, middle, inner;
  BlockedDim low, high;
  Index keeps_low;
  /// What is moved: the indices of outer from `first_outer` on, and `lows` indices of each rank's
  /// part of low from `first_low` on.
  Index first_outer, first_low, lows;
};

/// Copies from a rank's storage to blocks (kPack: before the all-to-all) or from blocks to storage
/// (after it). Also correct for the receiver: the padding that block k has along `kept` when it
/// arrives is that of rank k.
template <int kV, int kU, bool kPack, class T>
CC_DEVICE void MoveBlocks(const Grid& grid, T* storage, T* blocks, const Blocks& g, int ranks,
                          int rank, bool packed) {
  const Index low_stored = g.keeps_low ? g.low.per : g.low.extent,
              high_stored = g.keeps_low ? g.high.extent : g.high.per;
  const Index rows = g.outer * g.lows * g.middle, block = rows * g.high.per * g.inner;
  for (Index row = grid.BlockId(); row < ranks * rows; row += grid.GridSize()) {
    const int k = int(row / rows);
    const Index m = row % g.middle, l = g.first_low + row / g.middle % g.lows,
                o = g.first_outer + row % rows / (g.middle * g.lows);
    if (l >= OwnPart(g.low.extent, g.low.per, g.low.shift, g.keeps_low ? rank : k)) continue;
    const Index run =
        OwnPart(g.high.extent, g.high.per, g.high.shift, g.keeps_low ? k : rank) * g.inner;
    const Index low = g.keeps_low ? l : BeginOf(g.low.per, g.low.shift, k) + l,
                high = g.keeps_low ? BeginOf(g.high.per, g.high.shift, k) : 0;
    T* const own =
        storage + (((o * low_stored + low) * g.middle + m) * high_stored + high) * g.inner;
    T* const other = blocks + k * block + row % rows * g.high.per * g.inner;
    ForEach<kV, kU>(grid, 0, run, packed, [&](auto lanes, Index i) CC_INLINE {
      constexpr int V = decltype(lanes)::kCount;
      const auto x = FetchLanes<V>(reinterpret_cast<const Raw<T>*>(kPack ? own : other) + i);
      Raw<T>* const to = reinterpret_cast<Raw<T>*>(kPack ? other : own) + i;
      return [to, x]() CC_INLINE { StoreRaw<kCached>(to, Arrived(x)); };
    });
  }
}

/// Columns [begin, end) of `rows` rows of `length` elements.
struct ColumnsOfRows {
  Index rows, length, begin, end;
};

/// Copies columns from a tensor's rows to `block`, where they lie one row after the other (kPack),
/// or from there to the rows.
template <int kV, int kU, bool kPack, class T>
CC_DEVICE void MoveColumns(const Grid& grid, T* storage, T* block, const ColumnsOfRows& g,
                           bool packed) {
  const Index run = g.end - g.begin;
  for (Index row = grid.BlockId(); row < g.rows; row += grid.GridSize()) {
    T* const own = storage + row * g.length + g.begin;
    T* const other = block + row * run;
    ForEach<kV, kU>(grid, 0, run, packed, [&](auto lanes, Index i) CC_INLINE {
      constexpr int V = decltype(lanes)::kCount;
      const auto x = FetchLanes<V>(reinterpret_cast<const Raw<T>*>(kPack ? own : other) + i);
      Raw<T>* const to = reinterpret_cast<Raw<T>*>(kPack ? other : own) + i;
      return [to, x]() CC_INLINE { StoreRaw<kCached>(to, Arrived(x)); };
    });
  }
}

}  // namespace coconet
