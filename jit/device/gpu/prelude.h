#pragma once

// The kernel dialect for NVIDIA GPUs, on top of ptx.h: NVRTC's, or that of simulated threads.
// Declares the same names as the host prelude.

#include "kernel_abi.h"

/// The largest block size of a launch.
#define CC_MAX_THREADS 512

#include "ptx.h"

namespace coconet {

using Index = long long;

struct Grid {
  CC_MEMBER int BlockId() const { return BlockIndex(); }
  CC_MEMBER int GridSize() const { return BlockCount(); }
  CC_MEMBER int ThreadId() const { return ThreadIndex(); }
  CC_MEMBER int BlockSize() const { return ThreadCount(); }
  CC_MEMBER void Sync() const { SyncBlock(); }
  CC_MEMBER bool SyncAnd(bool ok) const { return SyncBlockAnd(ok); }
  /// The Pack of one element that `of` returns, computed by one thread of the block and read by
  /// all. A call may run only once in a kernel: a second store could come before slower threads
  /// have read the first value.
  template <class F>
  CC_MEMBER auto OfBlock(F&& of) const {
    CC_SHARED(decltype(of()), value, 1);
    // The element, not the struct: g++ does not tell simulated threads of structs that a call
    // returns into memory.
    if (ThreadId() == 0) value[0].d[0] = of().d[0];
    Sync();
    return value[0];
  }
  /// Combines the values of all threads of the block, in the same order on each thread.
  template <class T, class Combine>
  CC_MEMBER T Total(T mine, Combine&& combine) const {
    CC_SHARED(T, of_warp, 32);
    const int thread = ThreadId(), lane = thread % 32;
    const unsigned warp_threads =
        BlockSize() - (thread - lane) < 32 ? BlockSize() - (thread - lane) : 32;
    const unsigned mask = warp_threads == 32 ? 0xffffffffu : (1u << warp_threads) - 1;
    for (int distance = 16; distance > 0; distance /= 2) {
      const T other = ShuffleDown(mask, mine, distance);
      if (lane + distance < static_cast<int>(warp_threads)) mine = combine(mine, other);
    }
    Sync();  // all threads have read the previous total
    if (lane == 0) of_warp[thread / 32] = mine;
    Sync();
    T total = of_warp[0];
    for (int w = 1; w < (BlockSize() + 31) / 32; ++w) total = combine(total, of_warp[w]);
    return total;
  }
};

// ---- Packs: V values that one thread handles at once

/// Aligned to its size, up to the 16 bytes of the widest access, so that it is stored at once.
template <class T, int V>
struct alignas(sizeof(T) * V < 16 ? sizeof(T) * V : 16) Pack {
  T d[V];
};

template <class T, int V>
CC_DEVICE T Get(const Pack<T, V>& x, int lane) {
  return x.d[lane];
}
template <class T, int V>
CC_DEVICE void Put(Pack<T, V>& x, int lane, T value) {
  x.d[lane] = value;
}
template <int V, class T>
CC_DEVICE Pack<T, V> Splat(T value) {
  Pack<T, V> r;
  CC_UNROLL for (int i = 0; i < V; ++i) r.d[i] = value;
  return r;
}

/// The body of a function that computes lane i of a Pack<T, V> by an expression.
#define CC_LANES(T, expression)                              \
  Pack<T, V> r;                                              \
  CC_UNROLL for (int i = 0; i < V; ++i) r.d[i] = expression; \
  return r

template <class T, int V>
CC_DEVICE Pack<T, V> operator+(Pack<T, V> a, Pack<T, V> b) {
  CC_LANES(T, a.d[i] + b.d[i]);
}
template <class T, int V>
CC_DEVICE Pack<T, V> operator-(Pack<T, V> a, Pack<T, V> b) {
  CC_LANES(T, a.d[i] - b.d[i]);
}
template <class T, int V>
CC_DEVICE Pack<T, V> operator*(Pack<T, V> a, Pack<T, V> b) {
  CC_LANES(T, a.d[i] * b.d[i]);
}
template <class T, int V>
CC_DEVICE Pack<T, V> operator-(Pack<T, V> a) {
  CC_LANES(T, -a.d[i]);
}

// Quotients and roots of f32 are those of IEEE 754, rounded to nearest. The compiler's own code
// branches in each lane for very large and very small operands; these branch once per pack.

/// Whether 2^-kRange <= x < 2^kRange.
template <int kRange>
CC_DEVICE bool IsModerate(float x) {
  return (x >= __builtin_bit_cast(float, unsigned(127 - kRange) << 23)) &
         (x < __builtin_bit_cast(float, unsigned(127 + kRange) << 23));
}
template <int V>
CC_RARE Pack<float, V> RareQuotients(Pack<float, V> a, Pack<float, V> b) {
  CC_LANES(float, a.d[i] / b.d[i]);
}
/// By Newton's method from approximate reciprocals. Remainders a - b q are exact if they are no
/// subnormal numbers, and then the last correction rounds to nearest (P. Markstein, Computation of
/// elementary functions on the IBM RISC System/6000 processor, 1990, theorem 8).
template <int V>
CC_DEVICE Pack<float, V> Quotients(Pack<float, V> a, Pack<float, V> b) {
  Pack<float, V> q;
  bool moderate = true;
  CC_UNROLL for (int i = 0; i < V; ++i) {
    float r = ApproximateReciprocal(b.d[i]);
    r = FusedMultiplyAdd(r, FusedMultiplyAdd(-b.d[i], r, 1.0f), r);
    float x = a.d[i] * r;
    x = FusedMultiplyAdd(r, FusedMultiplyAdd(-b.d[i], x, a.d[i]), x);
    q.d[i] = FusedMultiplyAdd(r, FusedMultiplyAdd(-b.d[i], x, a.d[i]), x);
    moderate = moderate & IsModerate<50>(CC_LIBRARY(fabsf)(b.d[i])) &
               IsModerate<50>(CC_LIBRARY(fabsf)(q.d[i]));
  }
  return moderate ? q : RareQuotients(a, b);
}

template <class T, int V>
CC_DEVICE Pack<T, V> operator/(Pack<T, V> a, Pack<T, V> b) {
  if constexpr (sizeof(T) == 4 && T(0.5) != T(0)) {
    return Quotients(a, b);
  } else if constexpr (T(0.5) != T(0)) {
    CC_LANES(T, a.d[i] / b.d[i]);
  } else {  // integers: x / 0 is 0; the smallest / -1 wraps
    CC_LANES(T, b.d[i] == 0                       ? T(0)
                : T(-1) < T(0) && b.d[i] == T(-1) ? T(T(0) - a.d[i])
                                                  : T(a.d[i] / b.d[i]));
  }
}

/// Many threads hide the latency of memory; no data is prefetched.
constexpr bool kPrefetches = false;
CC_DEVICE void Prefetch(const void*) {}

/// The number of 32-bit words to handle at once.
constexpr int kRegisterWords = 4;

/// Packs of 64-bit lanes, each of two words.
typedef unsigned long long u64;
template <int V>
CC_DEVICE Pack<u64, V> Xor(Pack<u64, V> a, Pack<u64, V> b) {
  CC_LANES(u64, a.d[i] ^ b.d[i]);
}
template <int V>
CC_DEVICE Pack<u64, V> Or(Pack<u64, V> a, Pack<u64, V> b) {
  CC_LANES(u64, a.d[i] | b.d[i]);
}
template <int V>
CC_DEVICE Pack<u64, V> LowWords(Pack<u64, V> x) {
  CC_LANES(u64, x.d[i] & 0xffffffffull);
}
template <int V>
CC_DEVICE Pack<u64, V> HighWords(Pack<u64, V> x) {
  CC_LANES(u64, x.d[i] >> 32);
}
/// The 64-bit products of the low words.
template <int V>
CC_DEVICE Pack<u64, V> MulLowWords(Pack<u64, V> a, Pack<u64, V> b) {
  return LowWords(a) * LowWords(b);
}
/// Lane i receives in its low word the high (kHigh) or low word of lane i ^ 1. High
/// words are unspecified.
template <bool kHigh, int V>
CC_DEVICE Pack<u64, V> PartnersWords(Pack<u64, V> x) {
  CC_LANES(u64, kHigh ? x.d[i ^ 1] >> 32 : x.d[i ^ 1]);
}
/// Interleaves the low words of `low` and `high`: word 2i from lane i of `low`, 2i + 1 of `high`.
template <int V>
CC_DEVICE Pack<unsigned, 2 * V> JoinWords(Pack<u64, V> low, Pack<u64, V> high) {
  Pack<unsigned, 2 * V> r;
  CC_UNROLL for (int i = 0; i < V; ++i) r.d[2 * i] = unsigned(low.d[i]),
                                                r.d[2 * i + 1] = unsigned(high.d[i]);
  return r;
}

template <class To, class From, int V>
CC_DEVICE Pack<To, V> ConvertLanes(Pack<From, V> x) {
  CC_LANES(To, static_cast<To>(x.d[i]));
}

#define CC_COMPARE(Name, op)                                \
  template <class T, int V>                                 \
  CC_DEVICE Pack<int, V> Name(Pack<T, V> a, Pack<T, V> b) { \
    CC_LANES(int, a.d[i] op b.d[i] ? 1 : 0);                \
  }
CC_COMPARE(Less, <)
CC_COMPARE(LessEqual, <=)
CC_COMPARE(Greater, >)
CC_COMPARE(GreaterEqual, >=)
CC_COMPARE(EqualTo, ==)
CC_COMPARE(NotEqualTo, !=)
#undef CC_COMPARE

template <class T, int V>
CC_DEVICE Pack<T, V> Select(Pack<int, V> condition, Pack<T, V> a, Pack<T, V> b) {
  CC_LANES(T, condition.d[i] != 0 ? a.d[i] : b.d[i]);
}

// ---- Memory: accesses of the pack's size, up to 16 bytes; `p` is aligned to them

/// The widest word that is loaded or stored at once.
template <int kBytes>
struct WordOfBytes {
  using Type = uint4;
};
template <>
struct WordOfBytes<8> {
  using Type = uint2;
};
template <>
struct WordOfBytes<4> {
  using Type = unsigned;
};
template <>
struct WordOfBytes<2> {
  using Type = unsigned short;
};
template <>
struct WordOfBytes<1> {
  using Type = unsigned char;
};
template <class T, int V>
struct WordsOf {
  using Word = typename WordOfBytes<int(sizeof(T)) * V>::Type;
  static constexpr int kCount = int(sizeof(T)) * V / int(sizeof(Word));
  Word word[kCount];
};

template <int V, class T>
CC_DEVICE Pack<T, V> LoadLanes(const T* p) {
  using W = WordsOf<T, V>;
  W r;
  CC_UNROLL for (int i = 0; i < W::kCount; ++i) r.word[i] =
      LoadWord(reinterpret_cast<const typename W::Word*>(p) + i);
  return __builtin_bit_cast(Pack<T, V>, r);
}
template <int V, class T>
CC_DEVICE void StoreLanes(T* p, Pack<T, V> x) {
  using W = WordsOf<T, V>;
  const W words = __builtin_bit_cast(W, x);
  CC_UNROLL for (int i = 0; i < W::kCount; ++i)
      StoreWord(reinterpret_cast<typename W::Word*>(p) + i, words.word[i]);
}
template <int V, class T>
CC_DEVICE void StoreLanesStream(T* p, Pack<T, V> x) {
  using W = WordsOf<T, V>;
  const W words = __builtin_bit_cast(W, x);
  CC_UNROLL for (int i = 0; i < W::kCount; ++i)
      StoreWordStream(reinterpret_cast<typename W::Word*>(p) + i, words.word[i]);
}
CC_DEVICE void StreamFence() {}  // the memory model treats streaming stores as ordinary stores

/// Packs begin at multiples of their size.
constexpr bool kPacksAnywhere = false;
/// One lane, by a load of 4 bytes at least.
template <class T>
CC_DEVICE Pack<T, 1> LoadLane(const T* p) {
  if constexpr (sizeof(T) < 4) {
    return {{static_cast<T>(LoadWordAround(p))}};
  } else {
    return LoadLanes<1>(p);
  }
}

/// At any element, by loads of 4 bytes at least.
template <int V, class T>
CC_DEVICE Pack<T, V> LoadLanesAnywhere(const T* p) {
  constexpr int kBytes = int(sizeof(T)) * V;
  if constexpr (V == 1) return LoadLane(p);
  if (reinterpret_cast<u64>(p) % alignof(Pack<T, V>) == 0) return LoadLanes<V>(p);
  if constexpr (sizeof(T) < 4 && kBytes >= 4) {
    WordsAt<kBytes / 4> words;
    LoadWordsAt(p, words);
    return __builtin_bit_cast(Pack<T, V>, words);
  } else {
    CC_LANES(T, p[i]);
  }
}

/// Lanes of global memory whose loads are in flight: FetchLanes issues the loads, in the order of
/// the text, Arrived returns the lanes.
template <class T, int V>
struct LanesAhead {
  Pack<T, V> lanes;
};
template <int V, class T>
CC_DEVICE LanesAhead<T, V> FetchLanes(const T* p) {
  using W = WordsOf<T, V>;
  W r;
  CC_UNROLL for (int i = 0; i < W::kCount; ++i)
      FetchWord(reinterpret_cast<const typename W::Word*>(p) + i, r.word[i]);
  return {__builtin_bit_cast(Pack<T, V>, r)};
}
template <class T, int V>
CC_DEVICE Pack<T, V> Arrived(const LanesAhead<T, V>& x) {
  return x.lanes;
}

// ---- 16-bit floats: converted two at a time. NaNs of any sign and payload become 0x7fff.

template <int V>
CC_DEVICE Pack<float, V> FromBF16(Pack<unsigned short, V> x) {
  if constexpr (V == 1) {
    return {{__builtin_bit_cast(float, unsigned(x.d[0]) << 16)}};
  } else {
    const auto pairs = __builtin_bit_cast(Pack<unsigned, V / 2>, x);
    CC_LANES(float, __builtin_bit_cast(
                        float, i % 2 == 0 ? pairs.d[i / 2] << 16 : pairs.d[i / 2] & 0xffff0000u));
  }
}
template <int V>
CC_DEVICE Pack<unsigned short, V> ToBF16(Pack<float, V> x) {
  if constexpr (V == 1) {
    return {{BF16OfFloat(x.d[0])}};
  } else {
    Pack<unsigned, V / 2> pairs;
    CC_UNROLL for (int i = 0; i < V; i += 2) pairs.d[i / 2] = BF16sOfFloats(x.d[i], x.d[i + 1]);
    return __builtin_bit_cast(Pack<unsigned short, V>, pairs);
  }
}
template <int V>
CC_DEVICE Pack<unsigned short, V> ToBF16ByWord(Pack<float, V> x, Pack<unsigned, V> words) {
  const Pack<unsigned short, V> nearest = ToBF16(x);  // for infinities and NaNs
  Pack<unsigned short, V> r;
  CC_UNROLL for (int i = 0; i < V; ++i) {
    const unsigned bits = __builtin_bit_cast(unsigned, x.d[i]);
    const unsigned short drawn = static_cast<unsigned short>((bits + (words.d[i] >> 16)) >> 16);
    r.d[i] = (bits & 0x7f800000u) == 0x7f800000u ? nearest.d[i] : drawn;
  }
  return r;
}
template <int V>
CC_DEVICE Pack<float, V> FromF16(Pack<unsigned short, V> x) {
  CC_LANES(float, FloatOfHalf(x.d[i]));
}
template <int V>
CC_DEVICE Pack<unsigned short, V> ToF16(Pack<float, V> x) {
  if constexpr (V == 1) {
    return {{HalfOfFloat(x.d[0])}};
  } else {
    Pack<unsigned, V / 2> pairs;
    CC_UNROLL for (int i = 0; i < V; i += 2) pairs.d[i / 2] = HalvesOfFloats(x.d[i], x.d[i + 1]);
    return __builtin_bit_cast(Pack<unsigned short, V>, pairs);
  }
}

// ---- Flags ------------------------------------------------------------------------------------

/// False: resident blocks all run.
CC_DEVICE constexpr bool SharesCore(const Control*, int) { return false; }

/// True when a wait must end: the deadline, counted from `start`, has passed or the rank was told
/// to stop. Slow: reads the clock and host memory.
CC_DEVICE bool GivesUp(Control* control, unsigned long long start, const WaitFailure& failure) {
  const bool stopped = LoadAcquire(control->stop) != 0;
  if (!stopped && NowNs() - start < control->timeout_ns) return false;
  if (Exchange(&control->claimed, 1u) == 0) control->failure = failure;
  if (!stopped) StoreRelease(control->stop, control->self);
  return true;
}
constexpr unsigned kPollsPerLook = 256;

/// Waits until *flag has reached `epoch`. Returns false after the deadline, or when the rank was
/// told to stop; control->failure is filled in by the time the kernel has ended.
CC_DEVICE bool WaitFlag(Control* control, const unsigned* flag, unsigned epoch, int peer, int step,
                        int slot) {
  unsigned found = LoadAcquire(flag);
  if (static_cast<int>(found - epoch) >= 0) return true;
  NoteWait(flag, epoch);
  const unsigned long long start = NowNs();
  for (unsigned n = 1;; ++n) {
    found = LoadAcquire(flag);
    if (static_cast<int>(found - epoch) >= 0) return true;
    if (n % kPollsPerLook == 0 && GivesUp(control, start, {peer, step, slot, epoch, found}))
      return false;
  }
}

// ---- Message words: 4 bytes of data, the epoch above them; stored and loaded as one

/// 16 bytes at a time if N allows; each word is one access of the memory model.
template <int N>
CC_DEVICE void StoreWords(u64* to, Pack<u64, N> words) {
  if constexpr (N == 1) {
    StoreRelaxed(to, words.d[0]);
  } else {
    CC_UNROLL for (int i = 0; i < N; i += 2) StoreRelaxed(to + i, words.d[i], words.d[i + 1]);
  }
}
template <int N>
CC_DEVICE Pack<u64, N> LoadWords(const u64* from) {
  Pack<u64, N> r;
  if constexpr (N == 1) {
    LoadRelaxed(from, r.d[0]);
  } else {
    CC_UNROLL for (int i = 0; i < N; i += 2) LoadRelaxed(from + i, r.d[i], r.d[i + 1]);
  }
  return r;
}

/// The state of one wait for words.
struct Polls {
  unsigned count = 0;
  unsigned long long start = 0;
};
/// Called after a poll that found words of `peer` missing. True: poll again. False: as WaitFlag.
template <int N>
CC_DEVICE bool PollAgain(Polls& polls, Control* control, const u64* words, unsigned epoch, int peer,
                         int step, int slot) {
  // The epoch is the upper half of a little-endian word.
  NoteWait(reinterpret_cast<const unsigned*>(words) + 1, epoch);
  if (++polls.count % kPollsPerLook != 0) return true;
  if (polls.start == 0) polls.start = NowNs();
  return !GivesUp(control, polls.start,
                  {peer, step, slot, epoch, static_cast<unsigned>(LoadWords<1>(words).d[0] >> 32)});
}

}  // namespace coconet

#include "floats8.h"
#undef CC_LANES

#include "multicast.h"
