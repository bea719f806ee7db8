#pragma once

// Ring collectives on slices: each rank receives chunks from the previous rank only, and passes
// them on to the next.

namespace coconet {

template <int kRanks>
CC_DEVICE int RankAfter(const Sync<kRanks>& s) {
  return s.rank + 1 < kRanks ? s.rank + 1 : 0;
}
template <int kRanks>
CC_DEVICE int RankBefore(const Sync<kRanks>& s) {
  return s.rank > 0 ? s.rank - 1 : kRanks - 1;
}
/// The rank `hops` places before this one.
template <int kRanks>
CC_DEVICE int RankBehind(const Sync<kRanks>& s, int hops) {
  return (s.rank + kRanks - hops) % kRanks;
}

/// Signals that a chunk is stored on the next rank. `id` numbers the chunks of all slices.
template <int kRanks>
CC_DEVICE void PassOn(const Sync<kRanks>& s, const Grid& grid, Index id) {
  grid.Sync();
  if (grid.ThreadId() != 0) return;
  if (s.streaming) StreamFence();
  StoreRelease(
      s.flags[RankAfter(s)] + s.rank * s.row + FlagSlots::Chunk(grid.GridSize(), s.rounds, id),
      s.epoch);
}
/// Waits until the previous rank has stored chunk `id` here.
template <int kRanks>
CC_DEVICE bool AwaitHop(const Sync<kRanks>& s, const Grid& grid, Index id) {
  return AwaitChunk(s, grid, RankBefore(s), id);
}

/// One step's partial results of a reduction of slices. The reduction of rank r's slice begins at
/// rank r + 1; each rank adds its own operand to what it received, rank r last, so the order
/// differs between slices. Partial results have the compute type, so the result is rounded once.
template <class T>
struct Ring {
  const T* own;               // this rank's operand
  const Compute<T>* partial;  // the partial result received from the previous rank
  Compute<T>* next;           // where the next rank receives it
};
template <int kRanks, class T>
CC_DEVICE Ring<T> MakeRing(const Sync<kRanks>& s, const T* own,
                           Compute<T>* const (&partials)[kRanks]) {
  return {own, partials[s.rank], partials[RankAfter(s)]};
}
/// `first`: the reduction begins here, and nothing was received.
template <class T, int V>
struct FetchedOfRing {
  bool first;
  Fetched<T, V> own;
  Fetched<Compute<T>, V> partial;
};
template <int V, class T>
CC_DEVICE FetchedOfRing<T, V> FetchHop(const Ring<T>& ring, Index i, bool first) {
  FetchedOfRing<T, V> x;
  x.first = first;
  x.own = Fetch<V>(ring.own + i);
  if (!first) x.partial = Fetch<V>(ring.partial + i);
  return x;
}
template <int V, class T>
CC_DEVICE FetchedOfRing<T, V> FetchAll(const Ring<T>& ring, Index i) {
  return FetchHop<V>(ring, i, false);
}
template <class T, int V, class Combine>
CC_DEVICE Pack<Compute<T>, V> Combined(const FetchedOfRing<T, V>& x, Combine&& combine) {
  return x.first ? ValueOf(x.own) : combine(ValueOf(x.partial), ValueOf(x.own));
}

/// Stores the result (what Store stores at once) here and on the next rank, which passes it on.
template <bool kStream, int kRanks, class T, class Stored>
CC_DEVICE void StoreAround(const Sync<kRanks>& s, T* const (&ranks)[kRanks], Index i,
                           const Stored& x) {
  Store<kStream>(ranks[s.rank] + i, x);
  Store<kStream>(ranks[RankAfter(s)] + i, x);
}
/// What the previous rank stored here, to be copied to the next rank bit by bit.
template <int V, int kRanks, class T>
CC_DEVICE auto FetchOwn(const Sync<kRanks>& s, T* const (&ranks)[kRanks], Index i) {
  return Fetch<V>(reinterpret_cast<const Raw<T>*>(ranks[s.rank]) + i);
}
template <bool kStream, int V, int kRanks, class T>
CC_DEVICE void CopyOn(const Sync<kRanks>& s, T* const (&ranks)[kRanks], Index i,
                      const Fetched<Raw<T>, V>& x) {
  StoreRaw<kStream>(reinterpret_cast<Raw<T>*>(ranks[RankAfter(s)]) + i, Arrived(x.lanes));
}

}  // namespace coconet
