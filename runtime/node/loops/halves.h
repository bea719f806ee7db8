#pragma once

#include <bit>
#include <cstdint>

#include "coconet/base/dtype.h"

namespace coconet {

/// Conversions of f16 and bf16 without branches, so that loops over them vectorise; those of
/// dtype.h branch.

// Compiles the function once per vector width; the loader chooses when the program starts.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define CC_FOR_EACH_CPU [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define CC_FOR_EACH_CPU
#endif
// Inlined into each of these versions.
#define CC_IN_BODY [[gnu::always_inline]] inline

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

CC_IN_BODY float WidenHalf(F16 x) {
  const uint32_t magnitude = static_cast<uint32_t>(x.bits & 0x7fff) << 13;
  // As an f32 the exponent is too small by 112; the product corrects it and normalises subnormals.
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const uint32_t infinite = magnitude >= 0x7c00u << 13 ? 0x7f800000u : 0u;
  return std::bit_cast<float>(finite | infinite | static_cast<uint32_t>(x.bits & 0x8000) << 16);
}
CC_IN_BODY float WidenHalf(BF16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

/// The bits of a float of kDigits bits of mantissa, without the sign, of an f32's: rounded to
/// nearest, ties to even. What is too large has other bits.
template <int kDigits, int kBias>
CC_IN_BODY uint32_t NarrowBits(uint32_t magnitude) {
  constexpr int kDropped = 23 - kDigits;
  // The last place of this number is the smallest subnormal: the addition rounds to it.
  constexpr auto kUnit = static_cast<uint32_t>(151 - kBias - kDigits) << 23;
  constexpr auto kRebias = static_cast<uint32_t>(127 - kBias) << 23;
  constexpr uint32_t kBelowHalf = (1u << (kDropped - 1)) - 1;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(kUnit)) -
      kUnit;
  const uint32_t normal =
      (magnitude - kRebias + kBelowHalf + (magnitude >> kDropped & 1)) >> kDropped;
  return magnitude < kRebias + (1u << 23) ? subnormal : normal;
}

/// Rounds to nearest, ties to even.
template <class Half>
Half NarrowHalf(float x);
template <>
CC_IN_BODY F16 NarrowHalf<F16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t result = NarrowBits<10, 15>(magnitude);
  result = magnitude >= 0x47800000u ? 0x7c00u : result;  // 65536; from 65520 on it rounds to that
  result = magnitude > 0x7f800000u ? 0x7e00u : result;
  return {static_cast<uint16_t>(result | (bits >> 16 & 0x8000u))};
}
template <>
CC_IN_BODY BF16 NarrowHalf<BF16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const uint32_t nan = bits >> 16 | 0x40;
  return {static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded)};
}

/// out[i] = in[i] for `count` elements of f16 or bf16.
void WidenHalves(DType dtype, float* out, const void* in, int64_t count);
/// The same back, rounded to nearest, ties to even.
void NarrowHalves(DType dtype, void* out, const float* in, int64_t count);

}  // namespace coconet
