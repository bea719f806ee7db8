#pragma once

// Loads of reductions over ranks: from peers' memory, from staged copies, or from messages.

namespace coconet {

// ---- Direct loads; sums are in rank order, so that every rank gets the same bits

/// The elements of all ranks at one place, whose loads are in flight.
template <int kRanks, class T, int V>
struct FetchedOfRanks {
  Fetched<T, V> of[kRanks];
};
template <int V, int kRanks, class T>
CC_DEVICE FetchedOfRanks<kRanks, T, V> FetchAll(T* const (&peers)[kRanks], Index i) {
  FetchedOfRanks<kRanks, T, V> x;
  CC_UNROLL for (int r = 0; r < kRanks; ++r) x.of[r] = Fetch<V>(peers[r] + i);
  return x;
}
template <int kRanks, class T, int V, class Combine>
CC_DEVICE Pack<Compute<T>, V> Combined(const FetchedOfRanks<kRanks, T, V>& x, Combine&& combine) {
  Pack<Compute<T>, V> r = ValueOf(x.of[0]);
  CC_UNROLL for (int k = 1; k < kRanks; ++k) r = combine(r, ValueOf(x.of[k]));
  return r;
}

/// The same, but a switch sums if there is a multicast address, in unspecified order: only for
/// elements that one rank reduces for all.
template <int kRanks, class T, int V>
struct FetchedOfSwitch {
  bool summed;
  union {  // so that they share registers
    Pack<Raw<T>, V> sum;
    FetchedOfRanks<kRanks, T, V> peers;
  };
};
template <int V, int kRanks, class T>
CC_DEVICE auto FetchAll(const Multicast<T>& all, T* const (&peers)[kRanks], Index i) {
  FetchedOfSwitch<kRanks, T, V> x;
  constexpr bool kSums = kSame<T, f32> || (kHalf<T> && V % 2 == 0);
  x.summed = kSums && IsThere(all);
  if (!x.summed)
    x.peers = FetchAll<V>(peers, i);
  else if constexpr (kSums && kSame<T, f32>)
    x.sum = MulticastSum<V, kRanks>(all.ranks, i);
  else if constexpr (kSums && kSame<T, f16>)
    x.sum = MulticastSumF16<V, kRanks>(all.ranks, i);
  else if constexpr (kSums)
    x.sum = MulticastSumBF16<V, kRanks>(all.ranks, i);
  return x;
}
template <int kRanks, class T, int V, class Combine>
CC_DEVICE Pack<Compute<T>, V> Combined(const FetchedOfSwitch<kRanks, T, V>& x, Combine&& combine) {
  return x.summed ? FromRaw<T, V>(x.sum) : Combined(x.peers, combine);
}

/// Reduces over the ranks what FetchAll has fetched.
template <class Fetched>
CC_DEVICE auto Summed(const Fetched& x) {
  return Combined(x, [](auto a, auto b) { return a + b; });
}
template <class Fetched>
CC_DEVICE auto Greatest(const Fetched& x) {
  return Combined(x, [](auto a, auto b) { return Max(a, b); });
}
template <class Fetched>
CC_DEVICE auto Least(const Fetched& x) {
  return Combined(x, [](auto a, auto b) { return Min(a, b); });
}

// ---- Staged: each rank copies its operand to memory that only it writes

/// One step's staged operands. Each rank has two halves of `stride` elements, used alternately.
template <int kRanks, class T>
struct Staged {
  T* from[kRanks];  // each rank's staged operand as this rank loads it; its own: the original
  T* to;            // where this rank stages its operand
};
template <int kRanks, class T>
CC_DEVICE Staged<kRanks, T> MakeStaged(const Sync<kRanks>& s, T* own, T* const (&staging)[kRanks],
                                       Index stride) {
  const Index half = Index(s.epoch & 1) * stride;
  Staged<kRanks, T> staged;
  CC_UNROLL for (int r = 0; r < kRanks; ++r) staged.from[r] = r == s.rank ? own : staging[r] + half;
  staged.to = staging[s.rank] + half;
  return staged;
}

// ---- Messages (LL): each rank sends its operand to the others in words of data and epoch

/// One step's messages. Each rank has two halves, used alternately, with a part of `stride` words
/// per writer: word k holds bytes [4k, 4k + 4) of the writer's operand and above them the epoch.
/// Data and epoch are stored and loaded as one, so a reader that finds the epoch has the data. No
/// flags, no fences, no other waits, and no acknowledgement that words have been read.
///
/// Words have been read when they are overwritten. A rank stores words of step t + 2 in the half of
/// step t during launch t + 2, after its launch t + 1 has ended. Launch t + 1 read words of step
/// t + 1 from every peer (every rank reads whole operands; if these are empty, nothing is sent
/// either). Each peer sent those words in its launch t + 1, after its launch t, with all its reads
/// of words of step t, had ended. So it does not matter which threads store and load a word.
///
/// Epochs are compared for equality. A word is overwritten in every other step, so its old epoch is
/// the current one minus 2, or 0 before the first step, whose epoch is 1 or 2. That 0 is also a
/// regular epoch after 2^32 steps does no harm.
template <int kRanks, class T>
struct Messages {
  const T* own;         // this rank's operand
  const u64* inbox;     // this rank's half of this step
  u64* outbox[kRanks];  // this rank's part of each rank's half
  Index stride;
  Control* control;
  int rank, step;
  unsigned epoch;
  bool* lost;  // set when this thread has given up: its later loads and stores are invalid
};
template <int kRanks, class T>
CC_DEVICE Messages<kRanks, T> MakeMessages(const Sync<kRanks>& s, const T* own,
                                           i64* const (&words)[kRanks], Index stride, bool& lost) {
  const Index half = Index(s.epoch & 1) * kRanks * stride;
  Messages<kRanks, T> m;
  m.own = own;
  m.inbox = reinterpret_cast<const u64*>(words[s.rank]) + half;
  CC_UNROLL for (int r = 0; r < kRanks; ++r) m.outbox[r] =
      reinterpret_cast<u64*>(words[r]) + half + s.rank * stride;
  m.stride = stride;
  m.control = s.control;
  m.rank = s.rank;
  m.step = s.step;
  m.epoch = s.epoch;
  m.lost = &lost;
  return m;
}

/// Sends the groups of words that begin in chunk `c` of this rank's operand, which has n elements.
template <int kRanks, class T>
CC_DEVICE void SendChunk(const Grid& grid, const Messages<kRanks, T>& m, const Chunk& c, Index n) {
  constexpr int kWords = kRegisterWords / 2, kBytes = 4 * kWords, kSize = sizeof(T);
  const auto* bytes = reinterpret_cast<const unsigned char*>(m.own);
  const Index end = (c.end * kSize + kBytes - 1) / kBytes;
  for (Index k = (c.begin * kSize + kBytes - 1) / kBytes + grid.ThreadId(); k < end;
       k += grid.BlockSize()) {
    Pack<unsigned, kWords> data;
    if ((k + 1) * kBytes <= n * kSize) {
      data = LoadLanes<kWords>(reinterpret_cast<const unsigned*>(bytes + k * kBytes));
    } else {
      CC_UNROLL for (int w = 0; w < kWords; ++w) {
        unsigned word = 0;
        CC_UNROLL for (int b = 4 * w; b < 4 * w + 4; ++b) if (k * kBytes + b < n * kSize) word |=
            unsigned(bytes[k * kBytes + b]) << (8 * (b % 4));
        Put<unsigned, kWords>(data, w, word);
      }
    }
    const Pack<u64, kWords> words = Xor(ConvertLanes<u64>(data), Splat<kWords>(u64(m.epoch) << 32));
    CC_UNROLL for (int r = 0; r < kRanks; ++r) if (r != m.rank)
        StoreWords(m.outbox[r] + k * kWords, words);
  }
}

template <int N>
CC_DEVICE bool AnyBit(Pack<u64, N> x) {
  if constexpr (N == 1) {
    return Get(x, 0) != 0;
  } else {
    struct Two {
      Pack<u64, N / 2> half[2];
    } two = __builtin_bit_cast(Two, x);
    return AnyBit(Or(two.half[0], two.half[1]));
  }
}

/// Waits for words [word, word + N) of all peers and returns their data. Polls all peers at once,
/// so that the wait costs one latency.
template <int N, int kRanks, class T>
CC_DEVICE void Receive(const Messages<kRanks, T>& m, Index word,
                       Pack<unsigned, N> (&data)[kRanks]) {
  for (Polls polls;;) {
    int missing = -1;
    CC_UNROLL for (int r = 0; r < kRanks; ++r) {
      if (r == m.rank) continue;
      const Pack<u64, N> words = LoadWords<N>(m.inbox + r * m.stride + word);
      data[r] = ConvertLanes<unsigned>(words);
      // Among the missing peers, waits first for one that needs this core to make progress.
      if (AnyBit(Xor(HighWords(words), Splat<N>(u64(m.epoch)))) &&
          (missing < 0 || SharesCore(m.control, r)))
        missing = r;
    }
    if (missing < 0 || *m.lost) return;
    *m.lost = !PollAgain<N>(polls, m.control, m.inbox + missing * m.stride + word, m.epoch, missing,
                            m.step, FlagSlots::kInData);
  }
}

/// Combines V elements of all ranks, in rank order. V elements must fit in a few registers.
template <int V, int kRanks, class T, class Combine>
CC_DEVICE Pack<Compute<T>, V> CombineMessages(const Messages<kRanks, T>& m, Index i,
                                              Combine&& combine) {
  constexpr int kSize = sizeof(T), kBytes = kSize * V, kWords = kBytes < 4 ? 1 : kBytes / 4;
  Pack<unsigned, kWords> data[kRanks];
  Receive(m, i * kSize / 4, data);
  const Pack<Compute<T>, V> own = Load<V>(m.own + i);
  Pack<Compute<T>, V> x = own;
  CC_UNROLL for (int r = 0; r < kRanks; ++r) {
    Pack<Compute<T>, V> of_rank = own;
    if (r != m.rank) {
      if constexpr (kBytes < 4) {
        using Bits = Either<kBytes == 1, unsigned char, unsigned short>;
        const auto bits = static_cast<Bits>(Get(data[r], 0) >> (8 * (i * kSize % 4)));
        of_rank = FromRaw<T, V>(__builtin_bit_cast(Pack<Raw<T>, V>, bits));
      } else {
        of_rank = FromRaw<T, V>(__builtin_bit_cast(Pack<Raw<T>, V>, data[r]));
      }
    }
    x = r == 0 ? of_rank : combine(x, of_rank);
  }
  return x;
}
/// The same for any V, in parts of two registers of words per peer.
template <int V, int kRanks, class T, class Combine>
CC_DEVICE Pack<Compute<T>, V> CombineAll(const Messages<kRanks, T>& m, Index i, Combine&& combine) {
  constexpr int kMost = 4 * kRegisterWords / int(sizeof(T)), kPart = V < kMost ? V : kMost;
  struct Parts {
    Pack<Compute<T>, kPart> part[V / kPart];
  } parts;
  CC_UNROLL for (int k = 0; k < V / kPart; ++k) parts.part[k] =
      CombineMessages<kPart>(m, i + k * kPart, combine);
  return __builtin_bit_cast(Pack<Compute<T>, V>, parts);
}
/// Messages are waited for when their values are used.
template <int kRanks, class T, int V>
struct FetchedOfMessages {
  const Messages<kRanks, T>& messages;
  Index i;
};
template <int V, int kRanks, class T>
CC_DEVICE FetchedOfMessages<kRanks, T, V> FetchAll(const Messages<kRanks, T>& m, Index i) {
  return {m, i};
}
template <int kRanks, class T, int V, class Combine>
CC_DEVICE Pack<Compute<T>, V> Combined(const FetchedOfMessages<kRanks, T, V>& x,
                                       Combine&& combine) {
  return CombineAll<V>(x.messages, x.i, combine);
}

}  // namespace coconet
