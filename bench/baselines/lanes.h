#pragma once

// The widest vectors of the instruction set that the including file is compiled for. Such files are
// compiled once per instruction set, and the linker keeps one copy of each inline function; so
// everything here has internal linkage, and the C++ library is not included.

#include <stdint.h>

namespace coconet::bench {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float Lanes __attribute__((vector_size(kLanes * 4)));
typedef _Float16 Halves __attribute__((vector_size(kLanes * 2)));

template <class T>
inline T Load(const void* from) {
  typedef T Unaligned __attribute__((aligned(1), may_alias));
  return *static_cast<const Unaligned*>(from);
}
template <class T>
inline void Store(void* to, T value) {
  typedef T Unaligned __attribute__((aligned(1), may_alias));
  *static_cast<Unaligned*>(to) = value;
}

/// Bypasses the caches if the machine can; `to` must be aligned to the vector.
inline void StoreStreaming(void* to, Lanes value) {
#if defined(__AVX512F__)
  __builtin_ia32_movntps512(static_cast<float*>(to), value);
#elif defined(__AVX__)
  __builtin_ia32_movntps256(static_cast<float*>(to), value);
#elif defined(__SSE2__)
  __builtin_ia32_movntps(static_cast<float*>(to), value);
#else
  Store(to, value);
#endif
}
inline void StoreStreaming(void* to, Halves value) {
#if defined(__AVX512F__)
  typedef long long Words __attribute__((vector_size(32)));
  __builtin_ia32_movntdq256(static_cast<Words*>(to), (Words)value);
#elif defined(__AVX__)
  typedef long long Words __attribute__((vector_size(16)));
  __builtin_ia32_movntdq(static_cast<Words*>(to), (Words)value);
#else
  Store(to, value);
#endif
}

inline void StoreStreaming(void* to, float value) { Store(to, value); }

template <bool kStream, class T>
inline void StoreBy(void* to, T value) {
  if constexpr (kStream)
    StoreStreaming(to, value);
  else
    Store(to, value);
}

inline void StreamingFence() {
#if defined(__SSE2__)
  __builtin_ia32_sfence();
#endif
}

inline float Sqrt(float x) { return __builtin_sqrtf(x); }
inline Lanes Sqrt(Lanes x) {
  for (int i = 0; i < kLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
}

inline float Widen(_Float16 x) { return x; }
inline _Float16 Narrow(float x) { return x; }
inline Lanes Widen(Halves x) {
#if defined(__AVX512F__)
  typedef short Shorts __attribute__((vector_size(32)));
  constexpr int kCurrentRounding = 4;
  return __builtin_ia32_vcvtph2ps512_mask((Shorts)x, Lanes{}, -1, kCurrentRounding);
#elif defined(__F16C__)
  typedef short Shorts __attribute__((vector_size(16)));
  return __builtin_ia32_vcvtph2ps256((Shorts)x);
#else
  return __builtin_convertvector(x, Lanes);
#endif
}
inline Halves Narrow(Lanes x) {
#if defined(__AVX512F__)
  typedef short Shorts __attribute__((vector_size(32)));
  return (Halves)__builtin_ia32_vcvtps2ph512_mask(x, /*round to nearest even*/ 0, Shorts{}, -1);
#elif defined(__F16C__)
  return (Halves)__builtin_ia32_vcvtps2ph256(x, /*round to nearest even*/ 0);
#else
  return __builtin_convertvector(x, Halves);
#endif
}

/// A T of elements, of which f16 are widened.
template <class T>
inline T LoadWide(const float* from) {
  return Load<T>(from);
}
template <class T>
inline T LoadWide(const uint16_t* from) {
  return Widen(Load<decltype(Narrow(T()))>(from));
}

/// Calls loop<T>(i) for each T of n elements that begins at i: vectors, then the floats of the
/// tail.
template <class Loop>
inline void ForLanes(int64_t n, Loop loop) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) loop.template operator()<Lanes>(i);
  for (; i < n; ++i) loop.template operator()<float>(i);
}

}  // namespace
}  // namespace coconet::bench
