#pragma once

// The layer under the prelude for threads simulated on the host (runtime/simt). With
// -fsanitize=thread the host's compiler calls __tsan_read4 and the like before every access; these
// functions are defined here. They, and the functions that replace PTX, call the machine.

#include "simt_abi.h"

#define CC_DEVICE static inline __attribute__((always_inline))
#define CC_MEMBER __attribute__((always_inline))
/// A function that is called rarely.
#define CC_RARE CC_DEVICE
#define CC_UNROLL _Pragma("GCC unroll 64")
/// Behind the parameters of a lambda: it is inlined.
#define CC_INLINE __attribute__((always_inline))
#define CC_ROLLED
/// An array in shared memory; one per place in the source.
#define CC_SHARED(T, name, count)      \
  static const char name##_place = 0;  \
  T(&name)                             \
  [count] = *static_cast<T(*)[count]>( \
      ::coconet::SharedArray(&name##_place, sizeof(T) * (count), alignof(T)))
/// The block's dynamic shared memory, of which its launch says how many bytes there are; aligned to
/// 1024 bytes, and the same wherever it is declared.
#define CC_DYNAMIC_SHARED(name) unsigned char* const name = ::coconet::DynamicShared()
#define CC_MULTIMEM 0
/// A function of the C library for floating-point numbers.
#define CC_LIBRARY(function) __builtin_##function
/// A function that calls the machine, and whose own accesses are not checked.
#define CC_ASKS __attribute__((noinline, no_sanitize("thread")))

/// Defines kernel `name`. Its body sees the arguments as `p` (const Params&) and its block and
/// thread as `grid`.
#define CC_KERNEL(name)                                                                            \
  static __attribute__((noinline)) void name##_body(const Params& p, const ::coconet::Grid& grid); \
  extern "C" __attribute__((visibility("default"), no_sanitize("thread"))) void name(              \
      const void* params) {                                                                        \
    const Params p = *static_cast<const Params*>(params);                                          \
    name##_body(p, ::coconet::Grid{});                                                             \
  }                                                                                                \
  static __attribute__((noinline)) void name##_body(const Params& p, const ::coconet::Grid& grid)
/// The same for blocks of at most `threads` threads, which the driver reads at each launch.
#define CC_KERNEL_OF(name, threads)                                                     \
  extern "C" __attribute__((visibility("default"))) const int name##_threads = threads; \
  CC_KERNEL(name)

extern "C" {
__attribute__((visibility("default"))) ::coconet::SimtCalls* COCONET_SIMT_CALLS = nullptr;

// ---- Functions that the compiler calls before accesses

/// Accesses of the stack matter only where sums of products are.
#define CC_ACCESS_STACK(bytes, writes)                                                   \
  {                                                                                      \
    const unsigned long begin = reinterpret_cast<unsigned long>(p);                      \
    if (begin < calls->sums + calls->sums_bytes && begin + (bytes) > calls->sums)        \
      calls->access_sums(calls->machine, p, bytes, writes, __builtin_return_address(0)); \
    return;                                                                              \
  }
#define CC_ACCESS(name, bytes, writes, aligned)                                            \
  CC_ASKS void __tsan_##name(void* p) {                                                    \
    ::coconet::SimtCalls* const calls = COCONET_SIMT_CALLS;                                \
    if (reinterpret_cast<unsigned long>(p) - calls->stack < calls->stack_bytes)            \
      CC_ACCESS_STACK(bytes, writes)                                                       \
    calls->access(calls->machine, p, bytes, writes, aligned, __builtin_return_address(0)); \
  }
CC_ACCESS(read1, 1, false, true)
CC_ACCESS(read2, 2, false, true)
CC_ACCESS(read4, 4, false, true)
CC_ACCESS(read8, 8, false, true)
CC_ACCESS(read16, 16, false, true)
CC_ACCESS(write1, 1, true, true)
CC_ACCESS(write2, 2, true, true)
CC_ACCESS(write4, 4, true, true)
CC_ACCESS(write8, 8, true, true)
CC_ACCESS(write16, 16, true, true)
CC_ACCESS(unaligned_read2, 2, false, false)
CC_ACCESS(unaligned_read4, 4, false, false)
CC_ACCESS(unaligned_read8, 8, false, false)
CC_ACCESS(unaligned_read16, 16, false, false)
CC_ACCESS(unaligned_write2, 2, true, false)
CC_ACCESS(unaligned_write4, 4, true, false)
CC_ACCESS(unaligned_write8, 8, true, false)
CC_ACCESS(unaligned_write16, 16, true, false)
#undef CC_ACCESS
#define CC_RANGE(name, writes)                                                           \
  CC_ASKS void __tsan_##name(void* p, unsigned long bytes) {                             \
    ::coconet::SimtCalls* const calls = COCONET_SIMT_CALLS;                              \
    if (reinterpret_cast<unsigned long>(p) - calls->stack < calls->stack_bytes)          \
      CC_ACCESS_STACK(bytes, writes)                                                     \
    calls->access(calls->machine, p, bytes, writes, false, __builtin_return_address(0)); \
  }
CC_RANGE(read_range, false)
CC_RANGE(write_range, true)
#undef CC_RANGE
#undef CC_ACCESS_STACK
CC_ASKS void __tsan_init() {}
CC_ASKS void __tsan_func_entry(void*) {}
CC_ASKS void __tsan_func_exit() {}
}

/// CUDA's types, for loads and stores of 16 and 8 bytes.
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};

#include "float8_bits.h"

namespace coconet {

// ---- Threads of a block -----------------------------------------------------------------------

#define CC_CALLS SimtCalls* const calls = COCONET_SIMT_CALLS
#define CC_AT __builtin_return_address(0)
static CC_ASKS int BlockIndex() { return COCONET_SIMT_CALLS->place->block; }
static CC_ASKS int BlockCount() { return COCONET_SIMT_CALLS->place->blocks; }
static CC_ASKS int ThreadIndex() { return COCONET_SIMT_CALLS->place->thread; }
static CC_ASKS int ThreadCount() { return COCONET_SIMT_CALLS->place->threads; }
static CC_ASKS void SyncBlock() {
  CC_CALLS;
  calls->barrier(calls->machine, false, true, CC_AT);
}
static CC_ASKS bool SyncBlockAnd(bool ok) {
  CC_CALLS;
  return calls->barrier(calls->machine, true, ok, CC_AT);
}
/// Returns when whole warps of `threads` of the block's threads, the caller's among them, have come
/// to a barrier of the same number, 1 to 15.
static CC_ASKS void SyncThreads(int barrier, int threads) {
  CC_CALLS;
  calls->sync_threads(calls->machine, barrier, threads, CC_AT);
}
static CC_ASKS void SyncWarp() {
  CC_CALLS;
  calls->sync_warp(calls->machine, CC_AT);
}
static CC_ASKS void* SharedArray(const void* place, unsigned long bytes, unsigned long alignment) {
  CC_CALLS;
  return calls->shared(calls->machine, place, bytes, alignment);
}
static CC_ASKS unsigned char* DynamicShared() {
  CC_CALLS;
  return static_cast<unsigned char*>(calls->dynamic_shared(calls->machine));
}
static CC_ASKS unsigned long long ShuffleBitsDown(unsigned mask, unsigned long long bits,
                                                  int distance) {
  CC_CALLS;
  return calls->shuffle_down(calls->machine, mask, bits, distance, CC_AT);
}
/// The value of the thread `distance` further in the warp; the own value if there is no such
/// thread; unspecified if that thread is not in `mask`.
template <class T>
CC_DEVICE T ShuffleDown(unsigned mask, T value, int distance) {
  if constexpr (sizeof(T) == 8)
    return __builtin_bit_cast(
        T, ShuffleBitsDown(mask, __builtin_bit_cast(unsigned long long, value), distance));
  else
    return __builtin_bit_cast(T, static_cast<unsigned>(ShuffleBitsDown(
                                     mask, __builtin_bit_cast(unsigned, value), distance)));
}

/// The upper 64 bits of a product of 128.
CC_DEVICE unsigned long long HighProduct(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}

// ---- Memory -----------------------------------------------------------------------------------

/// A word of global memory is loaded or stored at once, and aligned to its size.
static CC_ASKS void Access(const void* p, int bytes, bool writes, const void* at) {
  CC_CALLS;
  calls->access(calls->machine, p, bytes, writes, true, at);
}
template <class Word>
static CC_ASKS Word LoadWord(const Word* p) {
  Access(p, sizeof(Word), false, CC_AT);
  return *p;
}
template <class Word>
static CC_ASKS void StoreWord(Word* p, Word x) {
  Access(p, sizeof(Word), true, CC_AT);
  *p = x;
}
/// The same for data that is not read again soon, and for loads before the first use.
template <class Word>
CC_DEVICE void StoreWordStream(Word* p, Word x) {
  StoreWord(p, x);
}
template <class Word>
CC_DEVICE void FetchWord(const Word* p, Word& x) {
  x = LoadWord(p);
}
/// kCount words at any address. They are loaded as aligned words, of which only the bytes within
/// them count as accessed.
template <int kCount>
struct WordsAt {
  unsigned word[kCount];
};
/// The bytes of an element of a type of at most 4 bytes, and others above them.
template <class T>
CC_DEVICE unsigned LoadWordAround(const T* p) {
  return static_cast<unsigned>(LoadWord(p));
}
template <int kCount>
static CC_ASKS void LoadWordsAt(const void* p, WordsAt<kCount>& words) {
  CC_CALLS;
  calls->access(calls->machine, p, 4 * kCount, false, false, CC_AT);
  __builtin_memcpy(&words, p, 4 * kCount);
}
/// Stores 16 bytes of any memory at once, 16-byte aligned.
CC_DEVICE void Store16(void* p, uint4 v) { StoreWord(static_cast<uint4*>(p), v); }

static CC_ASKS void StoreRelease(unsigned* flag, unsigned value) {
  CC_CALLS;
  const unsigned long long values[] = {value};
  calls->store(calls->machine, flag, 4, 1, true, values, CC_AT);
}
static CC_ASKS unsigned LoadAcquire(const unsigned* flag) {
  CC_CALLS;
  unsigned long long value;
  calls->load(calls->machine, flag, 4, 1, true, &value, CC_AT);
  return static_cast<unsigned>(value);
}
static CC_ASKS unsigned Exchange(unsigned* word, unsigned value) {
  CC_CALLS;
  return calls->exchange(calls->machine, word, value, CC_AT);
}
/// Notes that this thread waits for *flag to reach `epoch`.
static CC_ASKS void NoteWait(const unsigned* flag, unsigned epoch) {
  CC_CALLS;
  calls->note_wait(calls->machine, flag, epoch);
}

/// Relaxed accesses of 8 bytes, or of twice 8 bytes, where each 8 bytes are one access of the
/// memory model.
static CC_ASKS void StoreRelaxed(unsigned long long* to, unsigned long long a) {
  CC_CALLS;
  calls->store(calls->machine, to, 8, 1, false, &a, CC_AT);
}
static CC_ASKS void StoreRelaxed(unsigned long long* to, unsigned long long a,
                                 unsigned long long b) {
  CC_CALLS;
  const unsigned long long values[] = {a, b};
  calls->store(calls->machine, to, 8, 2, false, values, CC_AT);
}
static CC_ASKS unsigned long long LoadRelaxed(const unsigned long long* from) {
  CC_CALLS;
  unsigned long long value;
  calls->load(calls->machine, from, 8, 1, false, &value, CC_AT);
  return value;
}
CC_DEVICE void LoadRelaxed(const unsigned long long* from, unsigned long long& a) {
  a = LoadRelaxed(from);
}
struct TwoWords {
  unsigned long long word[2];
};
static CC_ASKS TwoWords LoadTwoWords(const unsigned long long* from) {
  CC_CALLS;
  TwoWords two;
  calls->load(calls->machine, from, 8, 2, false, two.word, CC_AT);
  return two;
}
CC_DEVICE void LoadRelaxed(const unsigned long long* from, unsigned long long& a,
                           unsigned long long& b) {
  const TwoWords two = LoadTwoWords(from);
  a = two.word[0], b = two.word[1];
}

/// Brings the line of an address from memory to the GPU's L2, which programs do not see.
CC_DEVICE void PrefetchLine(const void*) {}

// ---- Registers --------------------------------------------------------------------------------

/// Keeps the compiler from computing a number anew where it is used.
CC_DEVICE void KeepComputed(int&) {}

static CC_ASKS unsigned long long NowNs() {
  CC_CALLS;
  return calls->now_ns(calls->machine);
}
#undef CC_CALLS
#undef CC_AT

/// Multiplication corrects the exponent and normalises subnormals; infinities and NaNs are patched.
CC_DEVICE float FloatOfHalf(unsigned short half) {
  const unsigned magnitude = (half & 0x7fffu) << 13;
  const unsigned finite =
      __builtin_bit_cast(unsigned, __builtin_bit_cast(float, magnitude) * 0x1p112f);
  return __builtin_bit_cast(
      float,
      ((half & 0x7c00u) == 0x7c00u ? magnitude | 0x7f800000u : finite) | ((half & 0x8000u) << 16));
}
/// Rounds to nearest even: normals by integer arithmetic; subnormals by adding 0.5f, whose last
/// place is theirs.
CC_DEVICE unsigned short HalfOfFloat(float value) {
  const unsigned bits = __builtin_bit_cast(unsigned, value), magnitude = bits & 0x7fffffffu;
  const unsigned normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const unsigned subnormal =
      __builtin_bit_cast(unsigned, __builtin_bit_cast(float, magnitude) + 0.5f) - 0x3f000000u;
  unsigned half = magnitude < 0x38800000u ? subnormal : normal;
  if (magnitude >= 0x477ff000u) half = 0x7c00u;
  if (magnitude > 0x7f800000u) half = 0x7fffu;  // as PTX's cvt
  return static_cast<unsigned short>(half | (magnitude > 0x7f800000u ? 0 : (bits >> 16) & 0x8000u));
}
CC_DEVICE unsigned HalvesOfFloats(float low, float high) {
  return HalfOfFloat(low) | unsigned(HalfOfFloat(high)) << 16;
}
CC_DEVICE unsigned short BF16OfFloat(float value) {
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  const unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<unsigned short>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
}
CC_DEVICE unsigned BF16sOfFloats(float low, float high) {
  return BF16OfFloat(low) | unsigned(BF16OfFloat(high)) << 16;
}
CC_DEVICE void FloatsOfE4M3s(unsigned short bits, float& low, float& high) {
  low = FloatOfE4M3(bits);
  high = FloatOfE4M3(bits >> 8);
}
CC_DEVICE unsigned short E4M3sOfFloats(float low, float high) {
  return static_cast<unsigned short>(ClampedBitsOfE4M3(low) | ClampedBitsOfE4M3(high) << 8);
}
CC_DEVICE unsigned short E5M2sOfFloats(float low, float high) {
  return static_cast<unsigned short>(ClampedBitsOfE5M2(low) | ClampedBitsOfE5M2(high) << 8);
}
/// a * b + c, rounded once.
CC_DEVICE float FusedMultiplyAdd(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
/// A result as inexact as PTX allows: the last place is off by one for every other operand, and
/// subnormals are zeros.
CC_DEVICE float Approximate(float x, double exact) {
  const unsigned bits = __builtin_bit_cast(unsigned, static_cast<float>(exact));
  if ((bits & 0x7f800000u) == 0) return __builtin_bit_cast(float, bits & 0x80000000u);
  if ((bits & 0x7f800000u) == 0x7f800000u) return __builtin_bit_cast(float, bits);
  const unsigned last = __builtin_bit_cast(unsigned, x) * 0x9E3779B9u >> 30;
  return __builtin_bit_cast(float, bits + (last == 1u) - (last == 2u));
}
CC_DEVICE float WithoutSubnormal(float x) {
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  return __builtin_bit_cast(float, (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}
CC_DEVICE float ApproximateReciprocal(float x) {
  return Approximate(x, 1.0 / double(WithoutSubnormal(x)));
}
CC_DEVICE float ApproximateRsqrt(float x) {
  return WithoutSubnormal(static_cast<float>(1.0 / CC_LIBRARY(sqrt)(double(WithoutSubnormal(x)))));
}

}  // namespace coconet

#include "async_copies.h"
