#pragma once

// Instructions on multicast addresses: memory of all ranks of a node behind one NVSwitch. From
// sm_90 on. Part of ptx.h.

#if __CUDA_ARCH__ >= 900
#define CC_MULTIMEM 1

namespace coconet {

/// Orders accesses to one memory by a multicast address and by an ordinary address.
CC_DEVICE void FenceAliases() { asm volatile("fence.proxy.alias;" ::: "memory"); }

/// Sums of all ranks' 4-byte words, 16 bytes at a time if N allows.
#define CC_MULTIMEM_SUM(Name, type)                                                            \
  template <int N>                                                                             \
  CC_DEVICE void Name(unsigned* r, const void* from) {                                         \
    if constexpr (N % 4 == 0) {                                                                \
      CC_UNROLL for (int k = 0; k < N; k += 4) asm volatile(                                   \
          "multimem.ld_reduce.relaxed.sys.global.add" type(".v4") " {%0, %1, %2, %3}, [%4];" : \
          "=r"(r[k]), "=r"(r[k + 1]), "=r"(r[k + 2]),                                          \
          "=r"(r[k + 3]) : "l"(static_cast<const unsigned*>(from) + k) : "memory");            \
    } else if constexpr (N == 2) {                                                             \
      asm volatile("multimem.ld_reduce.relaxed.sys.global.add" type(".v2") " {%0, %1}, [%2];"  \
                   : "=r"(r[0]), "=r"(r[1])                                                    \
                   : "l"(from)                                                                 \
                   : "memory");                                                                \
    } else {                                                                                   \
      static_assert(N == 1);                                                                   \
      asm volatile("multimem.ld_reduce.relaxed.sys.global.add" type("") " %0, [%1];"           \
                   : "=r"(r[0])                                                                \
                   : "l"(from)                                                                 \
                   : "memory");                                                                \
    }                                                                                          \
  }
#define CC_F32(vec) vec ".f32"
#define CC_F16(vec) ".acc::f32" vec ".f16x2"
#define CC_BF16(vec) ".acc::f32" vec ".bf16x2"
CC_MULTIMEM_SUM(MultimemSumF32, CC_F32)
CC_MULTIMEM_SUM(MultimemSumF16, CC_F16)
CC_MULTIMEM_SUM(MultimemSumBF16, CC_BF16)
#undef CC_MULTIMEM_SUM
#undef CC_F32
#undef CC_F16
#undef CC_BF16

/// Stores 4-byte words to all ranks, 16 bytes at a time if N allows.
template <int N>
CC_DEVICE void MultimemStore(unsigned* to, const unsigned* w) {
  if constexpr (N % 4 == 0) {
    CC_UNROLL for (int k = 0; k < N; k += 4) asm volatile(
        "multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + k), "r"(w[k]),
        "r"(w[k + 1]), "r"(w[k + 2]), "r"(w[k + 3]) : "memory");
  } else if constexpr (N == 2) {
    asm volatile("multimem.st.relaxed.sys.global.v2.f32 [%0], {%1, %2};" ::"l"(to), "r"(w[0]),
                 "r"(w[1])
                 : "memory");
  } else {
    asm volatile("multimem.st.relaxed.sys.global.f32 [%0], %1;" ::"l"(to), "r"(w[0]) : "memory");
  }
}

}  // namespace coconet

#else
#define CC_MULTIMEM 0
#endif
