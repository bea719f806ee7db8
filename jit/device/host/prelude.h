#pragma once

// The kernel dialect for CPUs: a block is one thread, a pack is a compiler vector (GNU vector
// extensions; g++ and clang++). Includes no system header, which would take three quarters of a
// compile. Declares the same names as the GPU prelude.

#include "kernel_abi.h"

#define CC_DEVICE static inline __attribute__((always_inline))
/// A function that is compiled once for all kernels of a source, because compiling it takes long.
#if defined(__clang__)
#define CC_OUTLINED static __attribute__((noinline))
#else
#define CC_OUTLINED static __attribute__((noinline, noclone))
#endif
#define CC_UNROLL _Pragma("GCC unroll 16")
/// Behind the parameters of a lambda: it is inlined.
#define CC_INLINE __attribute__((always_inline))
/// A loop of few turns: not to be unrolled, for the sake of registers.
#define CC_ROLLED
/// A function of the C library for floating-point numbers.
#define CC_LIBRARY(function) __builtin_##function

/// Defines kernel `name`. Its body sees the arguments as `p` (const Params&) and its block and
/// thread as `grid`.
#define CC_KERNEL(name)                                                                      \
  static void name##_body(const Params& p, const ::coconet::Grid& grid);                     \
  extern "C" __attribute__((visibility("default"))) void name(const void* params, int block, \
                                                              int blocks) {                  \
    name##_body(*static_cast<const Params*>(params), ::coconet::Grid{block, blocks});        \
  }                                                                                          \
  static void name##_body(const Params& p, const ::coconet::Grid& grid)
/// The same for blocks of at most `threads` threads of a GPU.
#define CC_KERNEL_OF(name, threads) CC_KERNEL(name)

namespace coconet {

using Index = long long;

/// A tensor map: how a matrix lies in global memory, for loads of boxes by GPUs; zeros on hosts.
/// 64-byte aligned in a kernel's parameters.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

/// The calling thread's block and thread index. On the host a block has one thread.
struct Grid {
  int block, blocks;
  int BlockId() const { return block; }
  int GridSize() const { return blocks; }
  static constexpr int ThreadId() { return 0; }
  static constexpr int BlockSize() { return 1; }
  static void Sync() {}
  /// True when `ok` on all threads of the block.
  static bool SyncAnd(bool ok) { return ok; }
  /// The result of `of`, computed by one thread of the block. A call may run only once.
  template <class F>
  static auto OfBlock(F&& of) {
    return of();
  }
  /// Combines the values of all threads of the block.
  template <class T, class Combine>
  static T Total(T mine, Combine&&) {
    return mine;
  }
};

// ---- Packs: V values that one thread handles at once

template <class T, int V>
struct VectorOf {
  typedef T Type __attribute__((vector_size(sizeof(T) * V)));
};
template <class T>
struct VectorOf<T, 1> {
  using Type = T;
};
template <class T, int V>
struct Pack {
  typename VectorOf<T, V>::Type d;
};

template <class T, int V>
CC_DEVICE T Get(const Pack<T, V>& x, int lane) {
  if constexpr (V == 1)
    return x.d;
  else
    return x.d[lane];
}
template <class T, int V>
CC_DEVICE void Put(Pack<T, V>& x, int lane, T value) {
  if constexpr (V == 1)
    x.d = value;
  else
    x.d[lane] = value;
}
template <int V, class T>
CC_DEVICE Pack<T, V> Splat(T value) {
  if constexpr (V == 1)
    return {value};
  else
    return {value - typename VectorOf<T, V>::Type{}};
}

template <class T, int V>
CC_DEVICE Pack<T, V> operator+(Pack<T, V> a, Pack<T, V> b) {
  return {a.d + b.d};
}
template <class T, int V>
CC_DEVICE Pack<T, V> operator-(Pack<T, V> a, Pack<T, V> b) {
  return {a.d - b.d};
}
template <class T, int V>
CC_DEVICE Pack<T, V> operator*(Pack<T, V> a, Pack<T, V> b) {
  return {a.d * b.d};
}
template <class T, int V>
CC_DEVICE Pack<T, V> operator-(Pack<T, V> a) {
  return {-a.d};
}
template <class T, int V>
CC_DEVICE Pack<T, V> operator/(Pack<T, V> a, Pack<T, V> b) {
  if constexpr (T(0.5) != T(0)) {
    return {a.d / b.d};
  } else {  // integers, without traps: x / 0 is 0; the smallest / -1 wraps
    Pack<T, V> r{};
    for (int i = 0; i < V; ++i) {
      const T x = Get(a, i), y = Get(b, i);
      const bool negates = T(-1) < T(0) && y == T(-1);
      Put<T, V>(r, i, y == 0 ? T(0) : negates ? T(T(0) - x) : T(x / y));
    }
    return r;
  }
}

/// Prefetches the cache line of `p`, which may be any address.
constexpr bool kPrefetches = true;
CC_DEVICE void Prefetch(const void* p) { __builtin_prefetch(p); }
/// The same, into the second cache.
CC_DEVICE void PrefetchFar(const void* p) { __builtin_prefetch(p, 0, 2); }

/// Keeps the compiler from moving loads, stores and prefetches past this place.
CC_DEVICE void KeepOrder() { __asm__ volatile("" ::: "memory"); }

/// 32-bit words per register. g++ splits operations on longer vectors, some into single lanes.
#if defined(__AVX512F__)
constexpr int kRegisterWords = 16;
#elif defined(__AVX2__)
constexpr int kRegisterWords = 8;
#else
constexpr int kRegisterWords = 4;
#endif

/// Packs of 64-bit lanes, each of two words.
typedef unsigned long long u64;
template <int V>
CC_DEVICE Pack<u64, V> Xor(Pack<u64, V> a, Pack<u64, V> b) {
  return {a.d ^ b.d};
}
template <int V>
CC_DEVICE Pack<u64, V> Or(Pack<u64, V> a, Pack<u64, V> b) {
  return {a.d | b.d};
}
template <int V>
CC_DEVICE Pack<u64, V> LowWords(Pack<u64, V> x) {
  return {x.d & 0xffffffffull};
}
template <int V>
CC_DEVICE Pack<u64, V> HighWords(Pack<u64, V> x) {
  return {x.d >> 32};
}
/// The 64-bit products of the low words.
template <int V>
CC_DEVICE Pack<u64, V> MulLowWords(Pack<u64, V> a, Pack<u64, V> b) {
#if defined(__SSE2__) && !defined(__clang__)  // g++ would multiply all 64 bits
  using Words = typename VectorOf<int, 2 * V>::Type;
  [[maybe_unused]] const Words x = __builtin_bit_cast(Words, a.d),
                               y = __builtin_bit_cast(Words, b.d);
  using R = Pack<u64, V>;
#if defined(__AVX512F__)
  typedef long long V8 __attribute__((vector_size(64)));
  if constexpr (V == 8)
    return __builtin_bit_cast(R, __builtin_ia32_pmuludq512_mask(x, y, V8{}, 255));
#endif
#if defined(__AVX2__)
  if constexpr (V == 4) return __builtin_bit_cast(R, __builtin_ia32_pmuludq256(x, y));
#endif
  if constexpr (V == 2) return __builtin_bit_cast(R, __builtin_ia32_pmuludq128(x, y));
#endif
  return LowWords(a) * LowWords(b);
}
/// Lane i receives in its low word the high (kHigh) or low word of lane i ^ 1. High
/// words are unspecified.
template <bool kHigh, int V>
CC_DEVICE Pack<u64, V> PartnersWords(Pack<u64, V> x) {
#if defined(__clang__)
  Pack<u64, V> r;
  CC_UNROLL for (int i = 0; i < V; ++i) r.d[i] = kHigh ? x.d[i ^ 1] >> 32 : x.d[i ^ 1];
  return r;
#else  // shuffles 32-bit words, within 16 bytes
  using Words = typename VectorOf<unsigned, 2 * V>::Type;
  Words from;
  CC_UNROLL for (int i = 0; i < 2 * V; ++i) from[i] = 2 * ((i / 2) ^ 1) + kHigh;
  return {__builtin_bit_cast(typename VectorOf<u64, V>::Type,
                             __builtin_shuffle(__builtin_bit_cast(Words, x.d), from))};
#endif
}
/// Interleaves the low words of `low` and `high`: word 2i from lane i of `low`, 2i + 1 of `high`.
template <int V>
CC_DEVICE Pack<unsigned, 2 * V> JoinWords(Pack<u64, V> low, Pack<u64, V> high) {
  return {__builtin_bit_cast(typename VectorOf<unsigned, 2 * V>::Type,
                             LowWords(low).d | (high.d << 32))};
}

/// The upper 64 bits of a product of 128.
CC_DEVICE u64 HighProduct(u64 a, u64 b) {
  return static_cast<u64>(static_cast<unsigned __int128>(a) * b >> 64);
}

/// Lane-wise conversion; f32 -> integer truncates.
template <class To, class From, int V>
CC_DEVICE Pack<To, V> ConvertLanes(Pack<From, V> x) {
  if constexpr (V == 1)
    return {static_cast<To>(x.d)};
  else
    return {__builtin_convertvector(x.d, typename VectorOf<To, V>::Type)};
}

template <class T, int V>
struct Halves {
  Pack<T, V / 2> half[2];
};
/// True for vectors that g++ would split into lanes.
template <class T, int V>
constexpr bool kByHalves = V > 1 && int(sizeof(T)) * V > 4 * kRegisterWords;

#define CC_COMPARE(Name, op)                                                             \
  template <class T, int V>                                                              \
  CC_DEVICE Pack<int, V> Name(Pack<T, V> a, Pack<T, V> b) {                              \
    if constexpr (kByHalves<T, V>) {                                                     \
      using H = Halves<T, V>;                                                            \
      const H x = __builtin_bit_cast(H, a), y = __builtin_bit_cast(H, b);                \
      const Halves<int, V> r = {Name(x.half[0], y.half[0]), Name(x.half[1], y.half[1])}; \
      return __builtin_bit_cast(Pack<int, V>, r);                                        \
    } else if constexpr (V == 1) {                                                       \
      return {a.d op b.d ? 1 : 0};                                                       \
    } else {                                                                             \
      return {__builtin_convertvector(-(a.d op b.d), typename VectorOf<int, V>::Type)};  \
    }                                                                                    \
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
  if constexpr (kByHalves<T, V>) {
    using H = Halves<T, V>;
    const auto c = __builtin_bit_cast(Halves<int, V>, condition);
    const H x = __builtin_bit_cast(H, a), y = __builtin_bit_cast(H, b);
    const H r = {Select(c.half[0], x.half[0], y.half[0]), Select(c.half[1], x.half[1], y.half[1])};
    return __builtin_bit_cast(Pack<T, V>, r);
  } else if constexpr (V == 1) {
    return {condition.d != 0 ? a.d : b.d};
  } else {
    using Mask = decltype(a.d == b.d);
    return {__builtin_convertvector(condition.d, Mask) != 0 ? a.d : b.d};
  }
}

// ---- Memory -----------------------------------------------------------------------------------

template <int V, class T>
CC_DEVICE Pack<T, V> LoadLanes(const T* p) {
  if constexpr (V == 1) {
    return {*p};
  } else {
    typedef T Unaligned __attribute__((vector_size(sizeof(T) * V), aligned(alignof(T)), may_alias));
    return {*reinterpret_cast<const Unaligned*>(p)};
  }
}
/// Packs may begin at any element.
constexpr bool kPacksAnywhere = true;
template <int V, class T>
CC_DEVICE Pack<T, V> LoadLanesAnywhere(const T* p) {
  return LoadLanes<V>(p);
}
template <class T>
CC_DEVICE Pack<T, 1> LoadLane(const T* p) {
  return LoadLanes<1>(p);
}
/// Lanes of memory that Arrived loads. A processor looks ahead far enough by itself, and has too
/// few registers for values that are not used yet.
template <class T, int V>
struct LanesAhead {
  const T* from;
};
template <int V, class T>
CC_DEVICE LanesAhead<T, V> FetchLanes(const T* p) {
  return {p};
}
template <class T, int V>
CC_DEVICE Pack<T, V> Arrived(const LanesAhead<T, V>& x) {
  return LoadLanes<V>(x.from);
}
template <int V, class T>
CC_DEVICE void StoreLanes(T* p, Pack<T, V> x) {
  if constexpr (V == 1) {
    *p = x.d;
  } else {
    typedef T Unaligned __attribute__((vector_size(sizeof(T) * V), aligned(alignof(T)), may_alias));
    *reinterpret_cast<Unaligned*>(p) = x.d;
  }
}

/// A store that bypasses the cache, if the machine has one and `p` is aligned to the pack, or to 64
/// bytes.
template <int V, class T>
CC_DEVICE void StoreLanesStream(T* p, Pack<T, V> x) {
  constexpr unsigned long kAligned = sizeof(T) * V < 64 ? sizeof(T) * V : 64;
  if (reinterpret_cast<unsigned long>(p) % kAligned != 0) return StoreLanes<V>(p, x);
#if defined(__clang__)
  __builtin_nontemporal_store(x.d, reinterpret_cast<decltype(x.d)*>(p));
#elif defined(__SSE2__)
  constexpr int kBytes = sizeof(T) * V;
  typedef long long V2 __attribute__((vector_size(16)));
#if defined(__AVX512F__)
  typedef long long V8 __attribute__((vector_size(64)));
  if constexpr (kBytes % 64 == 0) {
    struct Parts {
      V8 part[kBytes / 64];
    } parts = __builtin_bit_cast(Parts, x.d);
    for (int i = 0; i < kBytes / 64; ++i)
      __builtin_ia32_movntdq512(reinterpret_cast<V8*>(p) + i, parts.part[i]);
    return;
  }
#endif
#if defined(__AVX__)
  typedef long long V4 __attribute__((vector_size(32)));
  if constexpr (kBytes % 32 == 0) {
    struct Parts {
      V4 part[kBytes / 32];
    } parts = __builtin_bit_cast(Parts, x.d);
    for (int i = 0; i < kBytes / 32; ++i)
      __builtin_ia32_movntdq256(reinterpret_cast<V4*>(p) + i, parts.part[i]);
    return;
  }
#endif
  if constexpr (kBytes % 16 == 0) {
    struct Parts {
      V2 part[kBytes / 16];
    } parts = __builtin_bit_cast(Parts, x.d);
    for (int i = 0; i < kBytes / 16; ++i)
      __builtin_ia32_movntdq(reinterpret_cast<V2*>(p) + i, parts.part[i]);
  } else {
    StoreLanes<V>(p, x);
  }
#else
  StoreLanes<V>(p, x);
#endif
}

/// Orders this thread's streaming stores before its next release.
CC_DEVICE void StreamFence() {
#if defined(__SSE2__)
  __builtin_ia32_sfence();
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// ---- Flags ------------------------------------------------------------------------------------

CC_DEVICE void StoreRelease(unsigned* flag, unsigned value) {
  __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}
CC_DEVICE unsigned LoadAcquire(const unsigned* flag) {
  return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}
CC_DEVICE void Pause() {
#if defined(__SSE2__)
  __builtin_ia32_pause();
#endif
}

/// True when rank `peer` runs on this rank's core, so that it makes no progress while
/// this rank spins.
CC_DEVICE bool SharesCore(const Control* control, int peer) { return control->near[peer] != 0; }

/// Waits until *flag has reached `epoch`. Returns false after the deadline or an abort, with
/// control->failure filled in.
CC_DEVICE bool WaitFlag(Control* control, const unsigned* flag, unsigned epoch, int peer, int step,
                        int slot) {
  const unsigned spins = SharesCore(control, peer) ? 0 : control->spins;
  for (unsigned n = 0; n <= spins; ++n) {
    if (static_cast<int>(LoadAcquire(flag) - epoch) >= 0) return true;
    Pause();
  }
  return control->wait(control, flag, epoch, peer, step, slot);
}

// ---- Message words: 4 bytes of data, the epoch above them; stored and loaded as one

/// As many words as a register holds: an access is atomic per lane of the vector.
template <int N>
struct RegisterOfWords {
  typedef u64 Type __attribute__((vector_size(8 * N), aligned(8), may_alias));
};
template <>
struct RegisterOfWords<1> {
  typedef u64 Type __attribute__((may_alias));
};
template <int N>
struct WordRegisters {
  static constexpr int kWords = N < kRegisterWords / 2 ? N : kRegisterWords / 2,
                       kCount = N / kWords;
  using Access = typename RegisterOfWords<kWords>::Type;
  Pack<u64, kWords> part[kCount];
};
template <int N>
CC_DEVICE void StoreWords(u64* to, Pack<u64, N> words) {
  using R = WordRegisters<N>;
  const R r = __builtin_bit_cast(R, words);
  for (int i = 0; i < R::kCount; ++i)
    *reinterpret_cast<volatile typename R::Access*>(to + i * R::kWords) = r.part[i].d;
}
template <int N>
CC_DEVICE Pack<u64, N> LoadWords(const u64* from) {
  using R = WordRegisters<N>;
  R r;
  for (int i = 0; i < R::kCount; ++i)
    r.part[i].d = *reinterpret_cast<const volatile typename R::Access*>(from + i * R::kWords);
  return __builtin_bit_cast(Pack<u64, N>, r);
}

/// Brings the line of an address nearer. A host's caches see to that themselves.
CC_DEVICE void PrefetchLine(const void*) {}

/// The state of one wait for words.
struct Polls {};
/// Called after a poll that found words of `peer` missing: waits for these. Returns false after the
/// deadline or an abort, as WaitFlag.
template <int N>
CC_DEVICE bool PollAgain(Polls&, Control* control, const u64* words, unsigned epoch, int peer,
                         int step, int slot) {
  for (int k = 0; k < N; ++k) {  // the epoch is the upper half of a little-endian word
    if (!WaitFlag(control, reinterpret_cast<const unsigned*>(words + k) + 1, epoch, peer, step,
                  slot))
      return false;
  }
  return true;
}

}  // namespace coconet

#include "float8_bits.h"
#include "floats16.h"
#include "floats8.h"
#include "multicast.h"
