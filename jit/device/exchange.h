#pragma once

// AllToAlls in kernels: loops over the elements that go from one rank to another.

namespace coconet {

/// How the tensors of an AllToAll are cut. They have extents [outer, first, middle, second, inner];
/// operands are sliced over one of `first` and `second`, results over the other: rank r has
/// [r * per - shift, (r + 1) * per - shift) of it.
struct ExchangeCut {
  Index outer, first, middle, second, inner, per_first, per_second, shift_first, shift_second;
};

/// Elements with contiguous global indices [begin, end) that go from one rank to another. Element i
/// is stored at i - shift on this rank, in the slice of the operand or of the result, and at
/// i - there on the other rank.
struct Parcel {
  Index begin, end, shift, there;
};

/// The dimension that an AllToAll's results are sliced over: `extent` indices, `pitch` elements
/// apart. Rank r receives [r * per - shift, (r + 1) * per - shift) of it.
struct DestinationCut {
  Divisor pitch, extent, per;
  Index shift;
};
/// The rank that receives element i, which is stored there at i - there.
struct Destination {
  int to;
  Index there;
};
CC_DEVICE Destination DestinationOf(const DestinationCut& x, Index i) {
  const Index line = Quotient(i, x.pitch), outer = Quotient(line, x.extent);
  const int to = int(Quotient(line - outer * x.extent.by + x.shift, x.per));
  return {to, (outer * (x.extent.by - x.per.by) + BeginOf(x.per.by, x.shift, to)) * x.pitch.by};
}
/// The first element that `rank` receives, if the extents before the dimension are 1.
CC_DEVICE Index FirstElementOf(const DestinationCut& x, int rank) {
  return BeginOf(x.per.by, x.shift, rank) * x.pitch.by;
}
/// Whether N neighbours from a multiple of N on go to one rank, and to a multiple of N there.
template <int N>
CC_DEVICE bool StayTogether(const DestinationCut& x) {
  return (x.per.by | x.shift | x.extent.by) * x.pitch.by % N == 0;
}

/// The most chunks that go from one rank to another.
CC_DEVICE Index CountParcels(const ExchangeCut& x, Index chunk) {
  const Index run = x.per_second * x.inner, runs = x.outer * x.per_first * x.middle;
  if (run == 0) return 0;
  if (run > chunk) return runs * ((run + chunk - 1) / chunk);
  return (runs + chunk / run - 1) / (chunk / run);
}

/// For each chunk of this block that goes from rank `from` to rank `to`, in the order of its
/// number: start(number) -> bool, f(parcel) for each of its parcels, finish(number). Returns false
/// once start does. A chunk is a part of one contiguous run of at most `chunk` elements, or several
/// runs; it has the same number, from `first` on, and belongs to the same block, on both ranks.
/// kFromFirst: operands are sliced over the first of the two dimensions. `here`: this rank is
/// `from`.
template <bool kFromFirst, class Start, class F, class Finish>
CC_DEVICE bool ForParcels(const Grid& grid, const ExchangeCut& x, int from, int to, bool here,
                          Index chunk, Index first, Start&& start, F&& f, Finish&& finish) {
  const int of_first_dim = kFromFirst ? from : to, of_second_dim = kFromFirst ? to : from;
  const Index first_begin = BeginOf(x.per_first, x.shift_first, of_first_dim),
              second_begin = BeginOf(x.per_second, x.shift_second, of_second_dim),
              rows = OwnPart(x.first, x.per_first, x.shift_first, of_first_dim),
              run = OwnPart(x.second, x.per_second, x.shift_second, of_second_dim) * x.inner,
              runs = x.outer * rows * x.middle;
  if (run == 0 || runs == 0) return true;
  const Index parts = run > chunk ? (run + chunk - 1) / chunk : 1,
              together = run > chunk ? 1 : chunk / run,
              count = run > chunk ? runs * parts : (runs + together - 1) / together;
  const Index turn = first % grid.GridSize();
  const Index begin_id =
      grid.BlockId() >= turn ? grid.BlockId() - turn : grid.BlockId() - turn + grid.GridSize();
  for (Index id = begin_id; id < count; id += grid.GridSize()) {
    if (!start(first + id)) return false;
    const Index run_begin = parts > 1 ? id / parts : id * together,
                run_end = run_begin + together < runs ? run_begin + together : runs,
                begin = parts > 1 ? id % parts * chunk : 0,
                end = parts > 1 && begin + chunk < run ? begin + chunk : run;
    Index m = run_begin % x.middle, row = run_begin / x.middle % rows,
          o = run_begin / x.middle / rows;
    for (Index r = run_begin; r < run_end; ++r) {
      const Index line = (o * x.first + first_begin + row) * x.middle + m,
                  at = (line * x.second + second_begin) * x.inner,
                  of_first =
                      (o * (x.first - x.per_first) + first_begin) * x.middle * x.second * x.inner,
                  of_second = (line * (x.second - x.per_second) + second_begin) * x.inner;
      const bool by_first = kFromFirst == here;
      f(Parcel{at + begin, at + end, by_first ? of_first : of_second,
               by_first ? of_second : of_first});
      if (++m < x.middle) continue;
      m = 0;
      if (++row < rows) continue;
      row = 0;
      ++o;
    }
    finish(first + id);
  }
  return true;
}

/// Signals to rank `to` that chunk `id` of what goes from this rank to it is stored there.
template <int kRanks>
CC_DEVICE void Deliver(const Sync<kRanks>& s, const Grid& grid, int to, Index id) {
  if (to == s.rank) return;
  grid.Sync();
  if (s.streaming && grid.ThreadId() == 0) StreamFence();
  if (grid.ThreadId() == 0)
    StoreRelease(s.flags[to] + s.rank * s.row + FlagSlots::Chunk(grid.GridSize(), s.rounds, id),
                 s.epoch);
}

}  // namespace coconet
