#pragma once

// Loops over the elements of a tensor, and how these are cut over ranks and chunks.

namespace coconet {

template <int V>
struct Lanes {
  static constexpr int kCount = V;
};

/// Whether packs may begin at the multiples of V: elements stored at i - shift are aligned there,
/// or need not be.
template <int V>
CC_DEVICE bool PacksFit(Index shift) {
  return kPacksAnywhere || shift % V == 0;
}

/// Issues the loads of U packs that lie `step` elements apart, then finishes one after the other.
/// `before` finishes those whose loads are issued.
template <int V, int U, class Begin, class Before>
CC_DEVICE void InFlight(Begin&& begin, Index i, Index step, Before&& before) {
  const auto finish = begin(Lanes<V>{}, i);
  if constexpr (U == 1) {
    before();
    finish();
  } else {
    InFlight<V, U - 1>(begin, i + step, step, [&]() CC_INLINE {
      before();
      finish();
    });
  }
}

/// Calls begin(Lanes<N>, i)() over [begin, end), divided among the block's threads: if `packed`,
/// packs of V from the first multiple of V on, and single elements before and behind them. begin(i)
/// issues loads and returns what computes and stores. A thread begins U packs, then finishes them.
template <int V, int U, class Begin>
CC_DEVICE void ForEach(const Grid& grid, Index begin, Index end, bool packed, Begin&& body) {
  Index head = begin, tail = begin;
  if (V > 1 && packed) {
    const Index next = (begin + V - 1) / V * V;
    head = next < end ? next : end;
    tail = head + (end - head) / V * V;
    const Index step = Index(grid.BlockSize()) * V;
    Index i = head + Index(grid.ThreadId()) * V;
    if constexpr (U > 1) {
      for (; i + (U - 1) * step < tail; i += U * step) InFlight<V, U>(body, i, step, [] {});
    }
    for (; i < tail; i += step) body(Lanes<V>{}, i)();
  }
  const Index heads = head - begin, singles = heads + (end - tail);
  CC_ROLLED for (Index k = grid.ThreadId(); k < singles; k += grid.BlockSize())
      body(Lanes<1>{}, k < heads ? begin + k : tail + (k - heads))();
}

/// The same, but with packs of W, a multiple of V, as far as there are so many elements together.
template <int V, int W, class Begin>
CC_DEVICE void ForEachWide(const Grid& grid, Index begin, Index end, bool packed, Begin&& body) {
  if constexpr (W <= V || V == 1) {
    ForEach<V, 1>(grid, begin, end, packed, body);
  } else {
    const Index next = (begin + V - 1) / V * V,
                head = !packed      ? end
                       : next < end ? next
                                    : end,
                wide = head + (end - head) / W * W;
    ForEach<V, 1>(grid, begin, head, false, body);
    for (Index i = head + Index(grid.ThreadId()) * W; i < wide; i += Index(grid.BlockSize()) * W)
      body(Lanes<W>{}, i)();
    ForEach<V, 1>(grid, wide, end, packed, body);
  }
}

/// Calls body(Lanes<N>, i) as ForEach<V, 1> does, with packs within a row of `map` only: elements
/// of others come one by one.
template <int V, int R, class Body>
CC_DEVICE void ForEachInRows(const Grid& grid, Index begin, Index end, const BroadcastMap<R>& map,
                             bool packed, Body&& body) {
  ForEach<V, 1>(grid, begin, end, packed, [&](auto lanes, Index i) CC_INLINE {
    return [&, i]() CC_INLINE {
      constexpr int N = decltype(lanes)::kCount;
      if (N == 1 || IsInRow<N>(map, i)) return body(Lanes<N>{}, i);
      for (int lane = 0; lane < N; ++lane) body(Lanes<1>{}, i + lane);
    };
  });
}

/// How a tensor is cut over ranks (coconet/base/slices.h): rank r has [r * per - shift, (r + 1) *
/// per - shift) of each of `outer` rows of `row` contiguous elements, stored contiguously and
/// padded to `per` per row.
struct Cut {
  Index outer, row, per, shift = 0;
};
/// The begin of rank `rank`'s part of a row; the next rank's part begins where it ends.
CC_DEVICE Index BeginOf(const Cut& cut, int rank) {
  const Index begin = BeginOf(cut.per, cut.shift, rank);
  return begin < cut.row ? begin : cut.row;
}
/// Contiguous elements of one rank's slice: global indices [begin, end). Element i is stored at
/// i - shift.
struct Chunk {
  Index begin, end, shift, id;
};

/// Elements [begin, end) of every slice.
struct Part {
  Index begin, end;
};

/// Calls f(chunk) -> bool for each chunk of `rank`'s slice that belongs to this block, until f
/// returns false. A chunk belongs to the same block on every rank.
template <class F>
CC_DEVICE bool ForChunks(const Grid& grid, const Cut& cut, int rank, Index chunk, F&& f) {
  const Index low = BeginOf(cut, rank), high = BeginOf(cut, rank + 1);
  const Index in_row = (cut.per + chunk - 1) / chunk;
  for (Index id = grid.BlockId(); id < cut.outer * in_row; id += grid.GridSize()) {
    const Index o = cut.outer == 1 ? 0 : id / in_row;
    const Index begin = low + (id - o * in_row) * chunk;
    const Index end = begin + chunk < high ? begin + chunk : high;
    if (begin >= end) continue;
    const Index base = o * cut.row;
    if (!f(Chunk{base + begin, base + end, base + low - o * cut.per, id})) return false;
  }
  return true;
}

/// ForChunks for one tensor of a list. Its chunks are numbered from `first` on; the chunks of all
/// tensors are dealt to blocks in turns.
template <class F>
CC_DEVICE bool ForListChunks(const Grid& grid, const Cut& cut, int rank, Index chunk, Index first,
                             F&& f) {
  const Index low = BeginOf(cut, rank), high = BeginOf(cut, rank + 1);
  const Index in_row = (cut.per + chunk - 1) / chunk;
  const Index turn = first % grid.GridSize();
  const Index begin_id =
      grid.BlockId() >= turn ? grid.BlockId() - turn : grid.BlockId() - turn + grid.GridSize();
  for (Index id = begin_id; id < cut.outer * in_row; id += grid.GridSize()) {
    const Index o = cut.outer == 1 ? 0 : id / in_row;
    const Index begin = low + (id - o * in_row) * chunk;
    const Index end = begin + chunk < high ? begin + chunk : high;
    if (begin >= end) continue;
    const Index base = o * cut.row;
    if (!f(Chunk{base + begin, base + end, base + low - o * cut.per, first + id})) return false;
  }
  return true;
}
/// The same for a part of a contiguous slice (outer is 1).
template <class F>
CC_DEVICE bool ForChunks(const Grid& grid, const Cut& cut, const Part& part, int rank, Index chunk,
                         F&& f) {
  const auto within = [&](Index i) { return i < cut.row ? i : cut.row; };
  const Index slice = within(rank * cut.per), low = within(rank * cut.per + part.begin),
              high = within(rank * cut.per + part.end);
  for (Index id = grid.BlockId(); id * chunk < part.end - part.begin; id += grid.GridSize()) {
    const Index begin = low + id * chunk, end = begin + chunk < high ? begin + chunk : high;
    if (begin < end && !f(Chunk{begin, end, slice, id})) return false;
  }
  return true;
}

/// The number of chunks in a rank's slice.
CC_DEVICE Index CountChunks(const Cut& cut, Index chunk) {
  return cut.outer * ((cut.per + chunk - 1) / chunk);
}

/// The chunk at the same place of node `node`'s slice: the slices of the nodes are contiguous, and
/// their chunks numbered consecutively.
CC_DEVICE Chunk OfNode(const Chunk& c, const Cut& cut, Index chunk, Index node) {
  return {c.begin, c.end, c.shift - node * cut.outer * cut.per,
          c.id + node * CountChunks(cut, chunk)};
}

}  // namespace coconet
