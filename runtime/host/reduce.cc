#include "runtime/host/reduce.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "coconet/base/status.h"

// One body for each vector width, chosen when the program starts.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CC_FOR_EACH_CPU [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define CC_FOR_EACH_CPU
#endif
// Compiled into each of those bodies, for its vectors.
#define CC_IN_BODY [[gnu::always_inline]] inline

namespace coconet {
namespace {

// Elements at a time: the accumulator stays in the first-level cache.
constexpr int64_t kChunk = 2048;

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
struct Bool {
  uint8_t byte;
};

// What a type is accumulated in.
template <class T>
struct AccumulatorOf { using Type = T; };
template <>
struct AccumulatorOf<F16> { using Type = float; };
template <>
struct AccumulatorOf<BF16> { using Type = float; };
template <>
struct AccumulatorOf<Bool> { using Type = uint8_t; };
// Unsigned, so that a sum may wrap; compared as signed below.
template <>
struct AccumulatorOf<int32_t> { using Type = uint32_t; };
template <>
struct AccumulatorOf<int64_t> { using Type = uint64_t; };
template <class T>
using Accumulator = typename AccumulatorOf<T>::Type;

template <class T>
CC_IN_BODY Accumulator<T> Widen(T x) { return static_cast<Accumulator<T>>(x); }
template <class T>
CC_IN_BODY T Narrow(Accumulator<T> x) { return static_cast<T>(x); }

// f16 without branches, which F32FromF16 and F16FromF32 of dtype.h have: they would not vectorise.
template <>
CC_IN_BODY float Widen<F16>(F16 x) {
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fff) << 13;
  // As an f32 the exponent is too small by 112; the product corrects it and normalises subnormals.
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const uint32_t infinite = magnitude >= 0x7c00u << 13 ? 0x7f800000u : 0u;
  return std::bit_cast<float>(finite | infinite | static_cast<uint32_t>(x.bits & 0x8000) << 16);
}
template <>
CC_IN_BODY F16 Narrow<F16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  // The last place of 0.5f is 2^-24, the smallest f16: the addition rounds to it.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  const uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;  // 65520 becomes infinity
  uint32_t result = magnitude < 113u << 23 ? subnormal : normal;
  result = magnitude >= 0x47800000u ? 0x7c00u : result;
  result = magnitude > 0x7f800000u ? 0x7e00u : result;
  return {static_cast<uint16_t>(result | (bits >> 16 & 0x8000u))};
}

template <>
CC_IN_BODY float Widen<BF16>(BF16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
template <>
CC_IN_BODY BF16 Narrow<BF16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t nan = bits >> 16 | 0x40;
  return {static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

template <>
CC_IN_BODY uint8_t Widen<Bool>(Bool x) { return x.byte != 0; }
template <>
CC_IN_BODY Bool Narrow<Bool>(uint8_t x) { return {x}; }

template <class T, ReduceKind kKind>
CC_IN_BODY Accumulator<T> Combine(Accumulator<T> a, Accumulator<T> b) {
  if constexpr (kKind == ReduceKind::kSum) {
    if constexpr (std::is_same_v<T, Bool>) return a | b;
    return a + b;
  } else {
    using Ordered = std::conditional_t<std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>, T, Accumulator<T>>;
    const bool less = static_cast<Ordered>(a) < static_cast<Ordered>(b);
    return (kKind == ReduceKind::kMax) == less ? b : a;
  }
}

template <class T, ReduceKind kKind>
CC_IN_BODY void ReduceAs(absl::Span<void* const> outs, absl::Span<const void* const> ins, int64_t count) {
  alignas(64) Accumulator<T> sum[kChunk];
  alignas(64) T narrow[kChunk];
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t n = std::min(kChunk, count - begin);
    const T* a = static_cast<const T*>(ins[0]) + begin;
    const T* b = static_cast<const T*>(ins[1]) + begin;
    for (int64_t i = 0; i < n; ++i) sum[i] = Combine<T, kKind>(Widen<T>(a[i]), Widen<T>(b[i]));
    for (size_t k = 2; k < ins.size(); ++k) {
      const T* next = static_cast<const T*>(ins[k]) + begin;
      for (int64_t i = 0; i < n; ++i) sum[i] = Combine<T, kKind>(sum[i], Widen<T>(next[i]));
    }
    for (int64_t i = 0; i < n; ++i) narrow[i] = Narrow<T>(sum[i]);
    for (void* out : outs) std::memcpy(static_cast<T*>(out) + begin, narrow, n * sizeof(T));
  }
}

template <class T>
CC_IN_BODY void ReduceOf(absl::Span<void* const> outs, absl::Span<const void* const> ins, int64_t count,
                         ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum: return ReduceAs<T, ReduceKind::kSum>(outs, ins, count);
    case ReduceKind::kMax: return ReduceAs<T, ReduceKind::kMax>(outs, ins, count);
    case ReduceKind::kMin: return ReduceAs<T, ReduceKind::kMin>(outs, ins, count);
  }
}

}  // namespace

CC_FOR_EACH_CPU void ReduceInto(absl::Span<void* const> outs, absl::Span<const void* const> ins, int64_t count,
                                DType dtype, ReduceKind kind) {
  switch (dtype) {
    case DType::kF32: return ReduceOf<float>(outs, ins, count, kind);
    case DType::kF16: return ReduceOf<F16>(outs, ins, count, kind);
    case DType::kBF16: return ReduceOf<BF16>(outs, ins, count, kind);
    case DType::kF64: return ReduceOf<double>(outs, ins, count, kind);
    case DType::kI32: return ReduceOf<int32_t>(outs, ins, count, kind);
    case DType::kI64: return ReduceOf<int64_t>(outs, ins, count, kind);
    case DType::kU8: return ReduceOf<uint8_t>(outs, ins, count, kind);
    case DType::kBool: return ReduceOf<Bool>(outs, ins, count, kind);
  }
}

void Accumulate(void* inout, const void* in, int64_t count, DType dtype, ReduceKind kind) {
  ReduceInto({inout}, {in, static_cast<const void*>(inout)}, count, dtype, kind);
}

}  // namespace coconet
