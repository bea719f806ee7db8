#ifndef COCONET_JIT_DEVICE_CUDA_MULTICAST_H_
#define COCONET_JIT_DEVICE_CUDA_MULTICAST_H_

// Memory of all ranks of a node at one address of an NVSwitch, which adds up what it loads and repeats what it stores: from sm_90 on. Part of the prelude.

namespace coconet {

template <class T>
struct Multicast {
  T* ranks;  // only multimem instructions may use it
};

#if __CUDA_ARCH__ >= 900

template <class T>
CC_DEVICE bool IsThere(const Multicast<T>& all) { return all.ranks != nullptr; }

/// Between accesses of one memory by a multicast address and by another one.
CC_DEVICE void FenceAliases() { asm volatile("fence.proxy.alias;" ::: "memory"); }

/// Words of 4 bytes, 16 bytes at a time where there are as many.
#define CC_MULTICAST_SUM(Name, type)                                                                                                              \
  template <int N>                                                                                                                                \
  CC_DEVICE void Name(unsigned* r, const void* from) {                                                                                            \
    if constexpr (N % 4 == 0) {                                                                                                                   \
      CC_UNROLL for (int k = 0; k < N; k += 4)                                                                                                    \
        asm volatile("multimem.ld_reduce.relaxed.sys.global.add" type(".v4") " {%0, %1, %2, %3}, [%4];"                                           \
                     : "=r"(r[k]), "=r"(r[k + 1]), "=r"(r[k + 2]), "=r"(r[k + 3]) : "l"(static_cast<const unsigned*>(from) + k) : "memory");      \
    } else if constexpr (N == 2) {                                                                                                                \
      asm volatile("multimem.ld_reduce.relaxed.sys.global.add" type(".v2") " {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "l"(from) : "memory");   \
    } else {                                                                                                                                      \
      static_assert(N == 1);                                                                                                                      \
      asm volatile("multimem.ld_reduce.relaxed.sys.global.add" type("") " %0, [%1];" : "=r"(r[0]) : "l"(from) : "memory");                        \
    }                                                                                                                                             \
  }
#define CC_F32(vec) vec ".f32"
#define CC_F16(vec) ".acc::f32" vec ".f16x2"
#define CC_BF16(vec) ".acc::f32" vec ".bf16x2"
CC_MULTICAST_SUM(MulticastWordsF32, CC_F32)
CC_MULTICAST_SUM(MulticastWordsF16, CC_F16)
CC_MULTICAST_SUM(MulticastWordsBF16, CC_BF16)
#undef CC_MULTICAST_SUM
#undef CC_F32
#undef CC_F16
#undef CC_BF16

/// Sums over the ranks in any order, rounded to the type of memory.
template <int V, int kRanks>
CC_DEVICE Pack<float, V> MulticastSum(float* ranks, Index i) {
  Pack<unsigned, V> r;
  MulticastWordsF32<V>(r.d, ranks + i);
  return __builtin_bit_cast(Pack<float, V>, r);
}
template <int V, int kRanks, class T>
CC_DEVICE Pack<unsigned short, V> MulticastSumF16(T* ranks, Index i) {
  Pack<unsigned, V / 2> r;
  MulticastWordsF16<V / 2>(r.d, ranks + i);
  return __builtin_bit_cast(Pack<unsigned short, V>, r);
}
template <int V, int kRanks, class T>
CC_DEVICE Pack<unsigned short, V> MulticastSumBF16(T* ranks, Index i) {
  Pack<unsigned, V / 2> r;
  MulticastWordsBF16<V / 2>(r.d, ranks + i);
  return __builtin_bit_cast(Pack<unsigned short, V>, r);
}
/// Of any words: the type names their size.
template <int V, int kRanks, class T, class R>
CC_DEVICE void MulticastStore(T* ranks, Index i, Pack<R, V> x) {
  constexpr int kWords = sizeof(R) * V / 4;
  const auto w = __builtin_bit_cast(Pack<unsigned, kWords>, x);
  unsigned* const to = reinterpret_cast<unsigned*>(ranks + i);
  if constexpr (kWords % 4 == 0) {
    CC_UNROLL for (int k = 0; k < kWords; k += 4)
      asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + k), "r"(w.d[k]), "r"(w.d[k + 1]), "r"(w.d[k + 2]),
                   "r"(w.d[k + 3])
                   : "memory");
  } else if constexpr (kWords == 2) {
    asm volatile("multimem.st.relaxed.sys.global.v2.f32 [%0], {%1, %2};" ::"l"(to), "r"(w.d[0]), "r"(w.d[1]) : "memory");
  } else {
    asm volatile("multimem.st.relaxed.sys.global.f32 [%0], %1;" ::"l"(to), "r"(w.d[0]) : "memory");
  }
}

#else

template <class T>
CC_DEVICE constexpr bool IsThere(const Multicast<T>&) { return false; }
CC_DEVICE void FenceAliases() {}
template <int V, int kRanks>
CC_DEVICE Pack<float, V> MulticastSum(float*, Index) { return {}; }
template <int V, int kRanks, class T>
CC_DEVICE Pack<unsigned short, V> MulticastSumF16(T*, Index) { return {}; }
template <int V, int kRanks, class T>
CC_DEVICE Pack<unsigned short, V> MulticastSumBF16(T*, Index) { return {}; }
template <int V, int kRanks, class T, class R>
CC_DEVICE void MulticastStore(T*, Index, Pack<R, V>) {}

#endif

}  // namespace coconet

#endif  // COCONET_JIT_DEVICE_CUDA_MULTICAST_H_
