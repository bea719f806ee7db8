#ifndef COCONET_JIT_DEVICE_FOLDS_H_
#define COCONET_JIT_DEVICE_FOLDS_H_

// Sums and extrema over elements: within a thread, a block, a rank, and all ranks; and the random words of dropout.

namespace coconet {

struct SumOf {
  template <class T, int V>
  CC_DEVICE Pack<T, V> Combine(Pack<T, V> a, Pack<T, V> b) { return a + b; }
};
struct MaxOf {
  template <class T, int V>
  CC_DEVICE Pack<T, V> Combine(Pack<T, V> a, Pack<T, V> b) { return Max(a, b); }
};
struct MinOf {
  template <class T, int V>
  CC_DEVICE Pack<T, V> Combine(Pack<T, V> a, Pack<T, V> b) { return Min(a, b); }
};

/// What values of a compute type are accumulated in: sums in double precision, so that their length does not matter.
template <class Kind, class T> struct WideOf { using Type = T; };
template <> struct WideOf<SumOf, float> { using Type = double; };
template <> struct WideOf<SumOf, int> { using Type = i64; };
template <class Kind, class T>
using Wide = typename WideOf<Kind, T>::Type;
/// How a partial result crosses to other blocks and ranks: 8 bytes.
template <class T> struct PartialOf { using Type = double; };
template <> struct PartialOf<int> { using Type = i64; };
template <> struct PartialOf<i64> { using Type = i64; };
template <class T>
using Partial = typename PartialOf<T>::Type;

/// One thread's part of a fold of values of compute type T.
template <class Kind, int V, class T>
struct Accumulator {
  Pack<Wide<Kind, T>, V> many;
  Pack<Wide<Kind, T>, 1> one;
};
template <class Kind, int V, class T>
CC_DEVICE Accumulator<Kind, V, T> MakeAccumulator(T first) {
  using W = Wide<Kind, T>;
  return {Splat<V>(W(first)), Splat<1>(W(first))};
}
template <class Kind, int V, class T, int L>
CC_DEVICE void Accumulate(Accumulator<Kind, V, T>& a, Pack<T, L> x) {
  if constexpr (L == V) a.many = Kind::Combine(a.many, ConvertLanes<Wide<Kind, T>>(x));
  else a.one = Kind::Combine(a.one, ConvertLanes<Wide<Kind, T>>(x));
}
/// All lanes, of all threads of the block; on every thread.
template <class Kind, int V, class T>
CC_DEVICE Wide<Kind, T> Total(const Grid& grid, const Accumulator<Kind, V, T>& a) {
  Pack<Wide<Kind, T>, 1> total = a.one;
  CC_UNROLL for (int i = 0; i < V; ++i) total = Kind::Combine(total, Splat<1>(Get(a.many, i)));
  return grid.Total(Get(total, 0), [](auto x, auto y) { return Get(Kind::Combine(Splat<1>(x), Splat<1>(y)), 0); });
}
/// As the compute type T of a value.
template <class T, class W>
CC_DEVICE Pack<T, 1> Folded(W total) { return Splat<1>(T(total)); }
template <class T, class W>
CC_DEVICE Pack<T, 1> Averaged(W total, Index count) { return Splat<1>(T(total / W(count))); }

// ---- Between blocks and ranks ------------------------------------------------------------------------

/// Where the blocks of all ranks leave their partial results of one fold: on each rank two halves, used in turn, of one word a
/// tensor, for each block of a rank. A half is written again two steps later, when every rank has been seen to have read it.
template <int kRanks, class P>
struct Partials {
  P* const* on;  // [rank]
  Index half, tensors;
};
template <int kRanks, class P>
CC_DEVICE Partials<kRanks, P> MakePartials(const Sync<kRanks>& s, const Grid& grid, P* const* on, Index tensors = 1) {
  return {on, Index(s.epoch & 1) * kRanks * grid.GridSize() * tensors, tensors};
}
/// This block's part of a tensor, for all ranks or for this one only; Meet makes it visible.
template <int kRanks, class P>
CC_DEVICE void Leave(const Partials<kRanks, P>& to, const Sync<kRanks>& s, const Grid& grid, bool for_all, P part, Index tensor = 0) {
  const Index at = to.half + (Index(s.rank) * grid.GridSize() + grid.BlockId()) * to.tensors + tensor;
  for (int r = grid.ThreadId(); r < kRanks; r += grid.BlockSize())
    if (for_all || r == s.rank) to.on[r][at] = part;
}
/// What the blocks of this rank, or of all ranks, left of a tensor; always in the same order.
template <class Kind, int kRanks, class P>
CC_DEVICE P Gathered(const Partials<kRanks, P>& from, const Sync<kRanks>& s, const Grid& grid, bool of_all, Index tensor = 0) {
  const P* parts = from.on[s.rank] + from.half + tensor;
  const Index begin = of_all ? 0 : Index(s.rank) * grid.GridSize();
  const Index end = of_all ? Index(kRanks) * grid.GridSize() : begin + grid.GridSize();
  Pack<P, 1> total = Splat<1>(parts[begin * from.tensors]);
  for (Index i = begin + 1; i < end; ++i) total = Kind::Combine(total, Splat<1>(parts[i * from.tensors]));
  return Get(total, 0);
}

/// What of(tensor), packs of one, add up to over all tensors, from `first` on; on every thread of the block, in the same order
/// wherever blocks are of one size.
template <class Kind, class T, class F>
CC_DEVICE Pack<T, 1> TotalOf(const Grid& grid, Index tensors, T first, F&& of) {
  using W = Wide<Kind, T>;
  Pack<W, 1> total = Splat<1>(W(first));
  for (Index t = grid.ThreadId(); t < tensors; t += grid.BlockSize()) total = Kind::Combine(total, ConvertLanes<W>(of(t)));
  return Splat<1>(T(grid.Total(Get(total, 0), [](auto x, auto y) { return Get(Kind::Combine(Splat<1>(x), Splat<1>(y)), 0); })));
}

// ---- Random words ---------------------------------------------------------------------------------------

/// Philox4x32-10 (coconet/philox.h) of V counters: word `k` of each in w[k].
template <int V>
struct PhiloxWords {
  Pack<unsigned, V> w[4];
};
template <int V>
CC_DEVICE PhiloxWords<V> Philox(Pack<unsigned, V> low, Pack<unsigned, V> high, unsigned stream0, unsigned stream1, unsigned key0,
                                unsigned key1) {
  PhiloxWords<V> c = {{low, high, Splat<V>(stream0), Splat<V>(stream1)}};
  for (int round = 0; round < 10; ++round) {
    const Pack<unsigned, V> a_high = MulHigh(c.w[0], 0xD2511F53u), a_low = c.w[0] * Splat<V>(0xD2511F53u);
    const Pack<unsigned, V> b_high = MulHigh(c.w[2], 0xCD9E8D57u), b_low = c.w[2] * Splat<V>(0xCD9E8D57u);
    c = {{Xor(Xor(b_high, c.w[1]), Splat<V>(key0)), b_low, Xor(Xor(a_high, c.w[3]), Splat<V>(key1)), a_low}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return c;
}

/// A word for each of V elements. `i`: index of the first one in the global tensor, a multiple of 4 unless there is one lane.
template <int V>
CC_DEVICE Pack<unsigned, V> RandomWords(Index i, i64 seed, i64 stream) {
  constexpr int kCounters = V >= 4 ? V / 4 : 1;
  Pack<unsigned, kCounters> low, high;
  const unsigned long long block = static_cast<unsigned long long>(i) / 4;
  CC_UNROLL for (int k = 0; k < kCounters; ++k) {
    Put<unsigned, kCounters>(low, k, unsigned(block + k));
    Put<unsigned, kCounters>(high, k, unsigned((block + k) >> 32));
  }
  const PhiloxWords<kCounters> words =
      Philox<kCounters>(low, high, unsigned(stream), unsigned(static_cast<unsigned long long>(stream) >> 32), unsigned(seed),
                        unsigned(static_cast<unsigned long long>(seed) >> 32));
  Pack<unsigned, V> r;
  CC_UNROLL for (int lane = 0; lane < V; ++lane) Put<unsigned, V>(r, lane, Get(words.w[int((i + lane) % 4)], lane / 4));
  return r;
}

/// x * scale where the element's word is at least `threshold`, else 0.
template <int V, class T>
CC_DEVICE Pack<T, V> Dropped(Pack<T, V> x, Index i, i64 seed, i64 stream, unsigned threshold, T scale) {
  const Pack<unsigned, V> words = RandomWords<V>(i, seed, stream);
  Pack<T, V> r = x * Splat<V>(scale);
  CC_UNROLL for (int lane = 0; lane < V; ++lane) {
    if (Get(words, lane) < threshold) Put<T, V>(r, lane, T(0));
  }
  return r;
}

/// x rounded to bf16 by each element's word.
template <int V>
CC_DEVICE Pack<float, V> RoundedByWords(Pack<float, V> x, Index i, i64 seed, i64 stream) {
  return FromBF16(ToBF16ByWord(x, RandomWords<V>(i, seed, stream)));
}

}  // namespace coconet

#endif  // COCONET_JIT_DEVICE_FOLDS_H_
