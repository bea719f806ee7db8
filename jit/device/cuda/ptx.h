#ifndef COCONET_JIT_DEVICE_CUDA_PTX_H_
#define COCONET_JIT_DEVICE_CUDA_PTX_H_

// The machine under the prelude, for NVRTC: CUDA's builtins, and inline PTX instead of libcu++, 0.1
// s a compile instead of 0.7. Declares the same names as simt/ptx.h; nothing else in the device
// headers of GPUs depends on who compiles them.

#define CC_DEVICE static __device__ __forceinline__
#define CC_MEMBER __device__
#define CC_UNROLL _Pragma("unroll")
/// An array that the threads of a block share, one a place in the source.
#define CC_SHARED(T, name, count) __shared__ T name[count]

/// Defines kernel `name`; the body sees its arguments as `p` (const Params&) and its place in the
/// launch as `grid`.
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
/// The value of the thread `distance` further in the warp; this one's where there is none. Any,
/// where that thread is not in `mask`.
template <class T>
CC_DEVICE T ShuffleDown(unsigned mask, T value, int distance) {
  return __shfl_down_sync(mask, value, distance);
}

// ---- Memory -----------------------------------------------------------------------------------

/// 16 bytes at once, at a multiple of 16.
CC_DEVICE uint4 Load16(const void* p) { return *static_cast<const uint4*>(p); }
CC_DEVICE void Store16(void* p, uint4 v) { *static_cast<uint4*>(p) = v; }
/// The same of what is not soon read again.
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
/// From here on this thread waits for *flag to reach `epoch`.
CC_DEVICE void NoteWait(const unsigned*, unsigned) {}

/// 8 bytes, or two times 8, of which each 8 are one access of the memory model.
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
/// To nearest even.
CC_DEVICE unsigned short HalfOfFloat(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

}  // namespace coconet

#include "async_copies.h"
#include "multimem.h"

#endif  // COCONET_JIT_DEVICE_CUDA_PTX_H_
