#pragma once

// The layer under the prelude for NVRTC: CUDA's builtins, and inline PTX instead of libcu++ (0.1 s
// per compile instead of 0.7 s). Declares the same names as simt/ptx.h; no other GPU header depends
// on the compiler.

#define CC_DEVICE static __device__ __forceinline__
#define CC_MEMBER __device__
/// A function that is not inlined, since it is called rarely.
#define CC_RARE static __device__ __noinline__
#define CC_UNROLL _Pragma("unroll")
/// Behind the parameters of a lambda: it is inlined.
#define CC_INLINE __attribute__((always_inline))
/// A loop of few turns: not to be unrolled, for the sake of registers.
#define CC_ROLLED _Pragma("unroll 1")
/// An array in shared memory; one per place in the source.
#define CC_SHARED(T, name, count) __shared__ T name[count]
/// The block's dynamic shared memory, of which its launch says how many bytes there are; aligned to
/// 1024 bytes, and the same wherever it is declared.
#define CC_DYNAMIC_SHARED(name) unsigned char* const name = ::coconet::dynamic_shared
/// A function of the C library for floating-point numbers.
#define CC_LIBRARY(function) function

/// A kernel is compiled for one block on a multiprocessor: told so, the compiler issues the loads
/// of a thread before it uses the first, with up to 128 registers. For Blackwell it takes all of
/// them even if fewer do; a bound of 640 threads leaves 96.
#if __CUDA_ARCH__ >= 1000
#define CC_BOUNDS __launch_bounds__(CC_MAX_THREADS + 128, 1)
#else
#define CC_BOUNDS __launch_bounds__(CC_MAX_THREADS, 1)
#endif

#define CC_KERNEL_WITHIN(name, bounds)                                       \
  CC_DEVICE void name##_body(const Params& p, const ::coconet::Grid& grid);  \
  extern "C" __global__ void bounds name(const __grid_constant__ Params p) { \
    name##_body(p, ::coconet::Grid{});                                       \
  }                                                                          \
  CC_DEVICE void name##_body(const Params& p, const ::coconet::Grid& grid)
/// Defines kernel `name`. Its body sees the arguments as `p` (const Params&) and its block and
/// thread as `grid`.
#define CC_KERNEL(name) CC_KERNEL_WITHIN(name, CC_BOUNDS)
/// The same for blocks of at most `threads` threads, which have all registers of a multiprocessor.
#define CC_KERNEL_OF(name, threads) CC_KERNEL_WITHIN(name, __launch_bounds__(threads, 1))

#include "float8_bits.h"

namespace coconet {

extern __shared__ __align__(1024) unsigned char dynamic_shared[];

// ---- Threads of a block -----------------------------------------------------------------------

CC_DEVICE int BlockIndex() { return static_cast<int>(blockIdx.x); }
CC_DEVICE int BlockCount() { return static_cast<int>(gridDim.x); }
CC_DEVICE int ThreadIndex() { return static_cast<int>(threadIdx.x); }
CC_DEVICE int ThreadCount() { return static_cast<int>(blockDim.x); }
CC_DEVICE void SyncBlock() { __syncthreads(); }
CC_DEVICE bool SyncBlockAnd(bool ok) { return __syncthreads_and(ok) != 0; }
/// Returns when whole warps of `threads` of the block's threads, the caller's among them, have come
/// to a barrier of the same number, 1 to 15.
CC_DEVICE void SyncThreads(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
CC_DEVICE void SyncWarp() { __syncwarp(); }
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

/// Loads a word of global memory. The compiler keeps these loads in the order of the text, and
/// before stores that follow them; so several are on their way before the first is used.
CC_DEVICE void FetchWord(const unsigned char* p, unsigned char& x) {
  unsigned byte;
  asm volatile("ld.global.u8 %0, [%1];" : "=r"(byte) : "l"(p) : "memory");
  x = static_cast<unsigned char>(byte);
}
CC_DEVICE void FetchWord(const unsigned short* p, unsigned short& x) {
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(x) : "l"(p) : "memory");
}
CC_DEVICE void FetchWord(const unsigned* p, unsigned& x) {
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory");
}
CC_DEVICE void FetchWord(const uint2* p, uint2& x) {
  asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(p) : "memory");
}
CC_DEVICE void FetchWord(const uint4* p, uint4& x) {
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(p)
               : "memory");
}
/// A word of global memory is loaded or stored at once, and aligned to its size.
template <class Word>
CC_DEVICE Word LoadWord(const Word* p) {
  Word x;
  FetchWord(p, x);
  return x;
}
CC_DEVICE void StoreWord(unsigned char* p, unsigned char x) { *p = x; }
CC_DEVICE void StoreWord(unsigned short* p, unsigned short x) { *p = x; }
CC_DEVICE void StoreWord(unsigned* p, unsigned x) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}
CC_DEVICE void StoreWord(uint2* p, uint2 x) {
  asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(x.x), "r"(x.y) : "memory");
}
CC_DEVICE void StoreWord(uint4* p, uint4 x) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(x.x), "r"(x.y), "r"(x.z),
               "r"(x.w)
               : "memory");
}
/// The same for data that is not read again soon.
CC_DEVICE void StoreWordStream(unsigned char* p, unsigned char x) { *p = x; }
CC_DEVICE void StoreWordStream(unsigned short* p, unsigned short x) { *p = x; }
CC_DEVICE void StoreWordStream(unsigned* p, unsigned x) {
  asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}
CC_DEVICE void StoreWordStream(uint2* p, uint2 x) {
  asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(x.x), "r"(x.y) : "memory");
}
CC_DEVICE void StoreWordStream(uint4* p, uint4 x) {
  asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(x.x), "r"(x.y), "r"(x.z),
               "r"(x.w)
               : "memory");
}
/// Loads kCount words at any address, by loads of the aligned words that contain parts of them.
template <int kCount>
struct WordsAt {
  unsigned word[kCount];
};
/// The 4 bytes from `p` on, of which only those in the aligned word of `p` are defined.
CC_DEVICE unsigned LoadWordAround(const void* p) {
  const auto address = reinterpret_cast<unsigned long long>(p);
  return LoadWord(reinterpret_cast<const unsigned*>(address & ~3ull)) >>
         8 * (static_cast<unsigned>(address) % 4);
}
template <int kCount>
CC_DEVICE void LoadWordsAt(const void* p, WordsAt<kCount>& words) {
  const auto address = reinterpret_cast<unsigned long long>(p);
  const auto* const from = reinterpret_cast<const unsigned*>(address & ~3ull);
  const unsigned behind = static_cast<unsigned>(address) % 4;
  unsigned low = LoadWord(from);
  CC_UNROLL for (int i = 0; i < kCount; ++i) {
    const unsigned high = i + 1 < kCount || behind != 0 ? LoadWord(from + i + 1) : 0u;
    words.word[i] = __funnelshift_r(low, high, 8 * behind);
    low = high;
  }
}

/// Stores 16 bytes of any memory at once, 16-byte aligned.
CC_DEVICE void Store16(void* p, uint4 v) { *static_cast<uint4*>(p) = v; }

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

/// Brings the line of an address from memory to the GPU's L2.
CC_DEVICE void PrefetchLine(const void* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

// ---- Registers --------------------------------------------------------------------------------

/// Keeps the compiler from computing a number anew where it is used.
CC_DEVICE void KeepComputed(int& number) { asm volatile("" : "+r"(number)); }

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
/// Rounds to nearest, ties to even. A NaN becomes 0x7fff, whatever its sign and payload.
CC_DEVICE unsigned short HalfOfFloat(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
/// The same of two values, the first in the low half.
CC_DEVICE unsigned HalvesOfFloats(float low, float high) {
  unsigned bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
/// The same in bf16.
CC_DEVICE unsigned short BF16OfFloat(float value) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
CC_DEVICE unsigned BF16sOfFloats(float low, float high) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
/// Two f8e4m3, the first in the low byte.
CC_DEVICE void FloatsOfE4M3s(unsigned short bits, float& low, float& high) {
#if __CUDA_ARCH__ >= 890
  unsigned halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(bits));
  low = FloatOfHalf(static_cast<unsigned short>(halves));
  high = FloatOfHalf(static_cast<unsigned short>(halves >> 16));
#else
  low = FloatOfE4M3(bits);
  high = FloatOfE4M3(bits >> 8);
#endif
}
/// Rounds two values to f8e4m3, to nearest, ties to even. What is beyond the greatest number
/// becomes that, a NaN 0x7f.
CC_DEVICE unsigned short E4M3sOfFloats(float low, float high) {
#if __CUDA_ARCH__ >= 890
  unsigned short bits;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(high), "f"(low));
  return bits;
#else
  return static_cast<unsigned short>(ClampedBitsOfE4M3(low) | ClampedBitsOfE4M3(high) << 8);
#endif
}
/// The same in f8e5m2.
CC_DEVICE unsigned short E5M2sOfFloats(float low, float high) {
#if __CUDA_ARCH__ >= 890
  unsigned short bits;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(high), "f"(low));
  return bits;
#else
  return static_cast<unsigned short>(ClampedBitsOfE5M2(low) | ClampedBitsOfE5M2(high) << 8);
#endif
}
/// a * b + c, rounded once.
CC_DEVICE float FusedMultiplyAdd(float a, float b, float c) { return __fmaf_rn(a, b, c); }
/// 1 / x and 1 / sqrt(x) with relative errors of at most 2^-23 and 2^-22.9 (PTX ISA, rcp and
/// rsqrt); subnormal operands and results are zeros.
CC_DEVICE float ApproximateReciprocal(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
CC_DEVICE float ApproximateRsqrt(float x) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

}  // namespace coconet

#include "async_copies.h"
#include "multimem.h"
