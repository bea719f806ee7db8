#pragma once

// The layer under the prelude for NVRTC: CUDA's builtins, and inline PTX instead of libcu++ (0.1 s
// per compile instead of 0.7 s). Declares the same names as simt/ptx.h; no other GPU header depends
// on the compiler.

#define CC_DEVICE static __device__ __forceinline__
#define CC_MEMBER __device__
#define CC_UNROLL _Pragma("unroll")
/// A loop of few turns: not to be unrolled, for the sake of registers.
#define CC_ROLLED _Pragma("unroll 1")
/// An array in shared memory; one per place in the source.
#define CC_SHARED(T, name, count) __shared__ T name[count]

/// Defines kernel `name`. Its body sees the arguments as `p` (const Params&) and its block and
/// thread as `grid`.
#define CC_KERNEL(name)                                                     \
  CC_DEVICE void name##_body(const Params& p, const ::coconet::Grid& grid); \
  extern "C" __global__ void __launch_bounds__(CC_MAX_THREADS)              \
      name(const __grid_constant__ Params p) {                              \
    name##_body(p, ::coconet::Grid{});                                      \
  }                                                                         \
  CC_DEVICE void name##_body(const Params& p, const ::coconet::Grid& grid)

namespace coconet {

// ---- Threads of a block -----------------------------------------------------------------------

CC_DEVICE int BlockIndex() { return static_cast<int>(blockIdx.x); }
CC_DEVICE int BlockCount() { return static_cast<int>(gridDim.x); }
CC_DEVICE int ThreadIndex() { return static_cast<int>(threadIdx.x); }
CC_DEVICE int ThreadCount() { return static_cast<int>(blockDim.x); }
CC_DEVICE void SyncBlock() { __syncthreads(); }
CC_DEVICE bool SyncBlockAnd(bool ok) { return __syncthreads_and(ok) != 0; }
/// The value of the thread `distance` further in the warp; the own value if there is no such
/// thread; unspecified if that thread is not in `mask`.
template <class T>
CC_DEVICE T ShuffleDown(unsigned mask, T value, int distance) {
  return __shfl_down_sync(mask, value, distance);
}

/// The upper 64 bits of a product of 128.
CC_DEVICE unsigned long long HighProduct(unsigned long long a, unsigned long long b) {
  return __umul64hi(a, b);
}

// ---- Memory -----------------------------------------------------------------------------------

/// 16 bytes at once, 16-byte aligned.
CC_DEVICE uint4 Load16(const void* p) { return *static_cast<const uint4*>(p); }
CC_DEVICE void Store16(void* p, uint4 v) { *static_cast<uint4*>(p) = v; }
/// The same for data that is not read again soon.
CC_DEVICE void Store16Stream(void* p, uint4 v) {
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}

CC_DEVICE void StoreRelease(unsigned* flag, unsigned value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
CC_DEVICE unsigned LoadAcquire(const unsigned* flag) {
  unsigned value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
CC_DEVICE unsigned Exchange(unsigned* word, unsigned value) { return atomicExch(word, value); }
/// Notes that this thread waits for *flag to reach `epoch`; for simulated threads only.
CC_DEVICE void NoteWait(const unsigned*, unsigned) {}

/// Relaxed accesses of 8 bytes, or of twice 8 bytes, where each 8 bytes are one access of the
/// memory model.
CC_DEVICE void StoreRelaxed(unsigned long long* to, unsigned long long a) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(a) : "memory");
}
CC_DEVICE void StoreRelaxed(unsigned long long* to, unsigned long long a, unsigned long long b) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(a), "l"(b) : "memory");
}
CC_DEVICE void LoadRelaxed(const unsigned long long* from, unsigned long long& a) {
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(a) : "l"(from) : "memory");
}
CC_DEVICE void LoadRelaxed(const unsigned long long* from, unsigned long long& a,
                           unsigned long long& b) {
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(a), "=l"(b)
               : "l"(from)
               : "memory");
}

// ---- Registers --------------------------------------------------------------------------------

CC_DEVICE unsigned long long NowNs() {
  unsigned long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}
CC_DEVICE float FloatOfHalf(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
/// Rounds to nearest, ties to even.
CC_DEVICE unsigned short HalfOfFloat(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

}  // namespace coconet

#include "async_copies.h"
#include "multimem.h"
