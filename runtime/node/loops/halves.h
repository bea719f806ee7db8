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

/// Rounds to nearest, ties to even.
template <class Half>
Half NarrowHalf(float x);
template <>
CC_IN_BODY F16 NarrowHalf<F16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  // The last place of 0.5f is 2^-24, the smallest f16: the addition rounds to it.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
                             std::bit_cast<uint32_t>(0.5f);
  // From 65520 on the result is infinity.
  const uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  uint32_t result = magnitude < 113u << 23 ? subnormal : normal;
  result = magnitude >= 0x47800000u ? 0x7c00u : result;
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
