#pragma once

// Sums and extrema over elements: of a thread, a block, a rank and all ranks. Random words of
// dropout and stochastic rounding.

namespace coconet {

struct SumOf {
  template <class T, int V>
  CC_DEVICE Pack<T, V> Combine(Pack<T, V> a, Pack<T, V> b) {
    return a + b;
  }
};
struct MaxOf {
  template <class T, int V>
  CC_DEVICE Pack<T, V> Combine(Pack<T, V> a, Pack<T, V> b) {
    return Max(a, b);
  }
};
struct MinOf {
  template <class T, int V>
  CC_DEVICE Pack<T, V> Combine(Pack<T, V> a, Pack<T, V> b) {
    return Min(a, b);
  }
};

/// The type of a partial result between blocks and ranks: 8 bytes.
template <class T>
using Partial = Either<kSame<T, int> || kSame<T, i64>, i64,
                       Either<kSame<T, u32> || kSame<T, u64>, u64, double>>;
/// The type in which values of a compute type are accumulated. Sums use double precision, so that
/// their error does not grow with their length.
template <class Kind, class T>
using Wide = Either<!kSame<Kind, SumOf>, T, Partial<T>>;

/// V lanes in parts that fill a register each: compilers keep a longer vector in memory.
template <class T, int V>
struct Registers {
  static constexpr int kMost = 4 * kRegisterWords / int(sizeof(T)),
                       kLanes = kMost < 1   ? 1
                                : V < kMost ? V
                                            : kMost,
                       kCount = V / kLanes;
  Pack<T, kLanes> part[kCount];
};

/// Combines all lanes: first neighbouring halves.
template <class Kind, class T, int V>
CC_DEVICE T TotalOfLanes(Pack<T, V> x) {
  if constexpr (V == 1) {
    return Get(x, 0);
  } else {
    struct Two {
      Pack<T, V / 2> half[2];
    };
    const Two two = __builtin_bit_cast(Two, x);
    return TotalOfLanes<Kind>(Kind::Combine(two.half[0], two.half[1]));
  }
}

/// One thread's partial result of a fold over values of compute type T.
template <class Kind, int V, class T>
struct Accumulator {
  Registers<Wide<Kind, T>, V> many;
  Pack<Wide<Kind, T>, 1> one;
};
template <class Kind, int V, class T>
CC_DEVICE Accumulator<Kind, V, T> MakeAccumulator(T first) {
  using R = Registers<Wide<Kind, T>, V>;
  Accumulator<Kind, V, T> a;
  CC_UNROLL for (int i = 0; i < R::kCount; ++i) a.many.part[i] =
      Splat<R::kLanes>(Wide<Kind, T>(first));
  a.one = Splat<1>(Wide<Kind, T>(first));
  return a;
}
template <class Kind, int V, class T, int L>
CC_DEVICE void Accumulate(Accumulator<Kind, V, T>& a, Pack<T, L> x) {
  using W = Wide<Kind, T>;
  if constexpr (L == V) {
    using R = Registers<W, V>;
    struct Parts {
      Pack<T, R::kLanes> part[R::kCount];
    };
    const Parts parts = __builtin_bit_cast(Parts, x);
    CC_UNROLL for (int i = 0; i < R::kCount; ++i) a.many.part[i] =
        Kind::Combine(a.many.part[i], ConvertLanes<W>(parts.part[i]));
  } else {
    a.one = Kind::Combine(a.one, ConvertLanes<W>(x));
  }
}
/// Combines all lanes of all threads of the block; the result is on every thread.
template <class Kind, int V, class T>
CC_DEVICE Wide<Kind, T> Total(const Grid& grid, const Accumulator<Kind, V, T>& a) {
  using R = Registers<Wide<Kind, T>, V>;
  Pack<Wide<Kind, T>, R::kLanes> many = a.many.part[0];
  CC_UNROLL for (int i = 1; i < R::kCount; ++i) many = Kind::Combine(many, a.many.part[i]);
  const Wide<Kind, T> mine = Get(Kind::Combine(a.one, Splat<1>(TotalOfLanes<Kind>(many))), 0);
  return grid.Total(mine,
                    [](auto x, auto y) { return Get(Kind::Combine(Splat<1>(x), Splat<1>(y)), 0); });
}
/// The results of V folds whose values were accumulated in a lane each, in compute type T.
template <class T, class Kind, int V, class U>
CC_DEVICE Pack<T, V> FoldedLanes(const Accumulator<Kind, V, U>& a) {
  using R = Registers<Wide<Kind, U>, V>;
  struct Parts {
    Pack<T, R::kLanes> part[R::kCount];
  } parts;
  CC_UNROLL for (int i = 0; i < R::kCount; ++i) parts.part[i] = ConvertLanes<T>(a.many.part[i]);
  return __builtin_bit_cast(Pack<T, V>, parts);
}
template <class T, class Kind, int V, class U>
CC_DEVICE Pack<T, V> AveragedLanes(Accumulator<Kind, V, U> a, Index count) {
  using R = Registers<Wide<Kind, U>, V>;
  CC_UNROLL for (int i = 0; i < R::kCount; ++i) a.many.part[i] =
      a.many.part[i] / Splat<R::kLanes>(Wide<Kind, U>(count));
  return FoldedLanes<T>(a);
}
/// Converts to compute type T.
template <class T, class W>
CC_DEVICE Pack<T, 1> Folded(W total) {
  return Splat<1>(T(total));
}
template <class T, class W>
CC_DEVICE Pack<T, 1> Averaged(W total, Index count) {
  return Splat<1>(T(total / W(count)));
}

// ---- Between blocks and ranks

/// Where the blocks of all ranks leave their partial results of one fold. Each rank has two halves,
/// used alternately, of one word per tensor and per block of each rank. A half is rewritten two
/// steps later, after this rank has seen every rank finish reading it.
template <int kRanks, class P>
struct Partials {
  P* const* on;  // [rank]
  Index half, tensors;
};
template <int kRanks, class P>
CC_DEVICE Partials<kRanks, P> MakePartials(const Sync<kRanks>& s, const Grid& grid, P* const* on,
                                           Index tensors = 1) {
  return {on, Index(s.epoch & 1) * kRanks * grid.GridSize() * tensors, tensors};
}
/// Leaves this block's partial result of a tensor, for all ranks or for this one only; Meet makes
/// it visible.
template <int kRanks, class P>
CC_DEVICE void Leave(const Partials<kRanks, P>& to, const Sync<kRanks>& s, const Grid& grid,
                     bool for_all, P part, Index tensor = 0) {
  const Index at =
      to.half + (Index(s.rank) * grid.GridSize() + grid.BlockId()) * to.tensors + tensor;
  for (int r = grid.ThreadId(); r < kRanks; r += grid.BlockSize())
    if (for_all || r == s.rank) to.on[r][at] = part;
}
/// Combines the partial results that the blocks of this rank, or of all ranks, left for a tensor;
/// always in the same order.
template <class Kind, int kRanks, class P>
CC_DEVICE P Gathered(const Partials<kRanks, P>& from, const Sync<kRanks>& s, const Grid& grid,
                     bool of_all, Index tensor = 0) {
  const P* parts = from.on[s.rank] + from.half + tensor;
  const Index begin = of_all ? 0 : Index(s.rank) * grid.GridSize();
  const Index end = of_all ? Index(kRanks) * grid.GridSize() : begin + grid.GridSize();
  Pack<P, 1> total = Splat<1>(parts[begin * from.tensors]);
  for (Index i = begin + 1; i < end; ++i)
    total = Kind::Combine(total, Splat<1>(parts[i * from.tensors]));
  return Get(total, 0);
}

/// Combines `first` and of(t), packs of one, over all tensors t; the result is on every thread of
/// the block. The order depends on the block size only.
template <class Kind, class T, class F>
CC_DEVICE Pack<T, 1> TotalOf(const Grid& grid, Index tensors, T first, F&& of) {
  using W = Wide<Kind, T>;
  Pack<W, 1> total = Splat<1>(W(first));
  for (Index t = grid.ThreadId(); t < tensors; t += grid.BlockSize())
    total = Kind::Combine(total, ConvertLanes<W>(of(t)));
  return Splat<1>(T(grid.Total(Get(total, 0), [](auto x, auto y) {
    return Get(Kind::Combine(Splat<1>(x), Splat<1>(y)), 0);
  })));
}

// ---- Random words

/// The words of Philox4x32-10 (coconet/base/philox.h) for V / 4 counters from `first` on, in order.
/// Lane 2k computes words 0 and 1 of counter k, lane 2k + 1 words 2 and 3, in the low words of
/// `even` and `odd`; their high words are unspecified. A lane holds both halves of a product of
/// 32-bit words.
template <int V>
CC_DEVICE Pack<unsigned, V> PhiloxWords(u64 first, u64 stream, u64 seed) {
  constexpr int kLanes = V / 2;
  Pack<int, kLanes> is_first;
  Pack<u64, kLanes> counter, factor, key_step;
  CC_UNROLL for (int i = 0; i < kLanes; ++i) {
    Put<int, kLanes>(is_first, i, i % 2 == 0);
    Put<u64, kLanes>(counter, i, i / 2);
    Put<u64, kLanes>(factor, i, i % 2 == 0 ? 0xD2511F53u : 0xCD9E8D57u);
    Put<u64, kLanes>(key_step, i, i % 2 == 0 ? 0x9E3779B9u : 0xBB67AE85u);
  }
  Pack<u64, kLanes> even = Select(is_first, Splat<kLanes>(first) + counter, Splat<kLanes>(stream)),
                    odd = HighWords(even);
  Pack<u64, kLanes> key = Select(is_first, Splat<kLanes>(seed), Splat<kLanes>(seed >> 32));
  for (int round = 0; round < 10; ++round) {
    const Pack<u64, kLanes> products = MulLowWords(even, factor);
    even = Xor(Xor(PartnersWords<true>(products), odd), key);
    odd = PartnersWords<false>(products);
    key = key + key_step;
  }
  return JoinWords(even, odd);
}

/// One word per element. `i`: index of the first element in the global tensor, a multiple of
/// min(V, 4).
template <int V>
CC_DEVICE Pack<unsigned, V> RandomWords(Index i, i64 seed, i64 stream) {
  if constexpr (V < 4) {
    const Pack<unsigned, 4> words = PhiloxWords<4>(u64(i) / 4, u64(stream), u64(seed));
    Pack<unsigned, V> r;
    CC_UNROLL for (int lane = 0; lane < V; ++lane) {
      const int at = int(u64(i) % 4) + lane;
      // Arithmetic instead of an index or a selection, which would move the words to memory.
      unsigned word = 0;
      CC_UNROLL for (int k = lane; k < 4; ++k) word |= Get(words, k) & (0u - unsigned(at == k));
      Put<unsigned, V>(r, lane, word);
    }
    return r;
  } else if constexpr (V <= kRegisterWords) {
    return PhiloxWords<V>(u64(i) / 4, u64(stream), u64(seed));
  } else {
    constexpr int kPart = kRegisterWords;
    struct Parts {
      Pack<unsigned, kPart> part[V / kPart];
    } parts;
    CC_UNROLL for (int k = 0; k < V / kPart; ++k) parts.part[k] =
        PhiloxWords<kPart>(u64(i) / 4 + k * kPart / 4, u64(stream), u64(seed));
    return __builtin_bit_cast(Pack<unsigned, V>, parts);
  }
}

/// x * scale if the element's word is at least `threshold`; else 0.
template <int V, class T>
CC_DEVICE Pack<T, V> Dropped(Pack<T, V> x, Index i, i64 seed, i64 stream, unsigned threshold,
                             T scale) {
  const Pack<unsigned, V> words = RandomWords<V>(i, seed, stream);
  return Select(Less(words, Splat<V>(threshold)), Splat<V>(T(0)), x * Splat<V>(scale));
}

/// Rounds x to bf16 stochastically, by each element's word.
template <int V>
CC_DEVICE Pack<float, V> RoundedByWords(Pack<float, V> x, Index i, i64 seed, i64 stream) {
  return FromBF16(ToBF16ByWord(x, RandomWords<V>(i, seed, stream)));
}

}  // namespace coconet
