#pragma once

#include <bit>
#include <cstdint>

#include "coconet/base/dtype.h"
#include "runtime/node/loops/halves.h"

namespace coconet {

// Conversions of f8e4m3 and f8e5m2 without branches, as those of halves.h.

struct F8E4M3 {
  uint8_t bits;
};
struct F8E5M2 {
  uint8_t bits;
};

CC_IN_BODY float WidenFloat8(F8E4M3 x) {
  const uint32_t magnitude = x.bits & 0x7f;
  // As an f32 the exponent is too small by 120; the product corrects it and normalises subnormals.
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 20) * 0x1p120f);
  const uint32_t nan = magnitude == 0x7f ? 0x7fc00000u : 0u;
  return std::bit_cast<float>(finite | nan | static_cast<uint32_t>(x.bits & 0x80) << 24);
}
/// An f8e5m2 is the upper half of an f16.
CC_IN_BODY float WidenFloat8(F8E5M2 x) {
  return WidenHalf(F16{static_cast<uint16_t>(x.bits << 8)});
}

/// Rounds to nearest, ties to even.
template <class Float8>
Float8 NarrowFloat8(float x);
template <>
CC_IN_BODY F8E4M3 NarrowFloat8<F8E4M3>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t result = NarrowBits<3, 7>(magnitude);
  // Beyond 464 the result is NaN.
  result = magnitude > 0x43e80000u ? 0x7fu : result;
  return {static_cast<uint8_t>(result | (bits >> 24 & 0x80u))};
}
template <>
CC_IN_BODY F8E5M2 NarrowFloat8<F8E5M2>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t result = NarrowBits<2, 15>(magnitude);
  // From 61440 on the result is infinity.
  result = magnitude >= 0x47700000u ? 0x7cu : result;
  result = magnitude > 0x7f800000u ? 0x7eu : result;
  return {static_cast<uint8_t>(result | (bits >> 24 & 0x80u))};
}

/// out[i] = in[i] for `count` elements of f8e4m3 or f8e5m2.
void WidenFloats8(DType dtype, float* out, const void* in, int64_t count);

}  // namespace coconet
