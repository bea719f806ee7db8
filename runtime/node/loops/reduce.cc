#include "runtime/node/loops/reduce.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "runtime/node/loops/floats8.h"
#include "runtime/node/loops/halves.h"

namespace coconet {
namespace {

// Elements per pass: the accumulator stays in the first-level cache.
constexpr int64_t kChunk = 2048;

struct Bool {
  uint8_t byte;
};

// The type in which sums are accumulated.
template <class T>
struct AccumulatorOf {
  using Type = T;
};
template <>
struct AccumulatorOf<F16> {
  using Type = float;
};
template <>
struct AccumulatorOf<BF16> {
  using Type = float;
};
template <>
struct AccumulatorOf<F8E4M3> {
  using Type = float;
};
template <>
struct AccumulatorOf<F8E5M2> {
  using Type = float;
};
template <>
struct AccumulatorOf<Bool> {
  using Type = uint8_t;
};
// Unsigned, so that sums may wrap; minimum and maximum compare as signed, below.
template <>
struct AccumulatorOf<int32_t> {
  using Type = uint32_t;
};
template <>
struct AccumulatorOf<int64_t> {
  using Type = uint64_t;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::Type;

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;
template <class T>
constexpr bool kIsFloat8 = std::is_same_v<T, F8E4M3> || std::is_same_v<T, F8E5M2>;

template <class T>
CC_IN_BODY Accumulator<T> Widen(T x) {
  if constexpr (kIsHalf<T>)
    return WidenHalf(x);
  else if constexpr (kIsFloat8<T>)
    return WidenFloat8(x);
  else if constexpr (std::is_same_v<T, Bool>)
    return x.byte != 0;
  else
    return static_cast<Accumulator<T>>(x);
}
template <class T>
CC_IN_BODY T Narrow(Accumulator<T> x) {
  if constexpr (kIsHalf<T>)
    return NarrowHalf<T>(x);
  else if constexpr (kIsFloat8<T>)
    return NarrowFloat8<T>(x);
  else if constexpr (std::is_same_v<T, Bool>)
    return {x};
  else
    return static_cast<T>(x);
}

template <class T, ReduceKind kKind>
CC_IN_BODY Accumulator<T> Combine(Accumulator<T> a, Accumulator<T> b) {
  if constexpr (kKind == ReduceKind::kSum) {
    if constexpr (std::is_same_v<T, Bool>) return a | b;
    return a + b;
  } else {
    using Ordered = std::conditional_t<std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>, T,
                                       Accumulator<T>>;
    const auto x = static_cast<Ordered>(a), y = static_cast<Ordered>(b);
    const bool y_is_nan = y != y;
    return (kKind == ReduceKind::kMax ? x < y : y < x) || y_is_nan ? b : a;
  }
}

template <class T, ReduceKind kKind>
CC_IN_BODY void ReduceAs(absl::Span<void* const> outs, absl::Span<const void* const> ins,
                         int64_t count) {
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
CC_IN_BODY void ReduceOf(absl::Span<void* const> outs, absl::Span<const void* const> ins,
                         int64_t count, ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return ReduceAs<T, ReduceKind::kSum>(outs, ins, count);
    case ReduceKind::kMax:
      return ReduceAs<T, ReduceKind::kMax>(outs, ins, count);
    case ReduceKind::kMin:
      return ReduceAs<T, ReduceKind::kMin>(outs, ins, count);
  }
}

}  // namespace

CC_FOR_EACH_CPU void ReduceInto(absl::Span<void* const> outs, absl::Span<const void* const> ins,
                                int64_t count, DType dtype, ReduceKind kind) {
  switch (dtype) {
    case DType::kF32:
      return ReduceOf<float>(outs, ins, count, kind);
    case DType::kF16:
      return ReduceOf<F16>(outs, ins, count, kind);
    case DType::kBF16:
      return ReduceOf<BF16>(outs, ins, count, kind);
    case DType::kF64:
      return ReduceOf<double>(outs, ins, count, kind);
    case DType::kI8:
      return ReduceOf<int8_t>(outs, ins, count, kind);
    case DType::kI16:
      return ReduceOf<int16_t>(outs, ins, count, kind);
    case DType::kI32:
      return ReduceOf<int32_t>(outs, ins, count, kind);
    case DType::kI64:
      return ReduceOf<int64_t>(outs, ins, count, kind);
    case DType::kU8:
      return ReduceOf<uint8_t>(outs, ins, count, kind);
    case DType::kU16:
      return ReduceOf<uint16_t>(outs, ins, count, kind);
    case DType::kU32:
      return ReduceOf<uint32_t>(outs, ins, count, kind);
    case DType::kU64:
      return ReduceOf<uint64_t>(outs, ins, count, kind);
    case DType::kBool:
      return ReduceOf<Bool>(outs, ins, count, kind);
    case DType::kF8E4M3:
      return ReduceOf<F8E4M3>(outs, ins, count, kind);
    case DType::kF8E5M2:
      return ReduceOf<F8E5M2>(outs, ins, count, kind);
  }
}

void CopyUnlessSame(void* out, const void* in, int64_t bytes) {
  if (out != in) std::memcpy(out, in, bytes);
}

}  // namespace coconet
