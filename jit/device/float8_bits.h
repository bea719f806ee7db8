#pragma once

// Conversions between 8-bit floats and f32 by integer arithmetic, of numbers (U and F: unsigned and
// float) or of vectors of them. Part of the preludes. What f8e4m3 cannot hold becomes NaN, which
// has one form, 0x7f.

namespace coconet {

/// Rounds to nearest even: normals by integer arithmetic; subnormals by adding a number whose last
/// place is theirs. 464, the middle between 448 and the next number, is rounded to 448.
template <class U, class F>
CC_DEVICE U BitsOfE4M3(F x) {
  const U bits = __builtin_bit_cast(U, x), magnitude = bits & 0x7fffffffu;
  const U normal = (magnitude - 0x3c000000u + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20;
  const U subnormal =
      __builtin_bit_cast(U, __builtin_bit_cast(F, magnitude) + 0x1p14f) - 0x46800000u;
  const U finite = (magnitude < 0x3c800000u ? subnormal : normal) | ((bits >> 24) & 0x80u);
  const U nan = U{} + 0x7fu;
  return magnitude > 0x43e80000u ? nan : finite;
}
/// The same; from 61440 on the result is infinity.
template <class U, class F>
CC_DEVICE U BitsOfE5M2(F x) {
  const U bits = __builtin_bit_cast(U, x), magnitude = bits & 0x7fffffffu;
  const U normal = (magnitude - 0x38000000u + 0xfffffu + ((magnitude >> 21) & 1u)) >> 21;
  const U subnormal =
      __builtin_bit_cast(U, __builtin_bit_cast(F, magnitude) + 0x1p7f) - 0x43000000u;
  const U infinite = U{} + 0x7cu, nan = U{} + 0x7fu;
  U result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x47700000u ? infinite : result;
  result = result | ((bits >> 24) & 0x80u);
  return magnitude > 0x7f800000u ? nan : result;
}

/// The multiplication corrects the exponent and normalises subnormals; NaNs are patched.
CC_DEVICE float FloatOfE4M3(unsigned bits) {
  const unsigned magnitude = bits & 0x7fu;
  const float finite = __builtin_bit_cast(float, magnitude << 20) * 0x1p120f;
  const unsigned result = magnitude == 0x7fu ? 0x7fc00000u : __builtin_bit_cast(unsigned, finite);
  return __builtin_bit_cast(float, result | (bits & 0x80u) << 24);
}

/// As cvt with satfinite of PTX: what is beyond the greatest number becomes that.
CC_DEVICE unsigned ClampedBitsOfE4M3(float x) {
  const unsigned sign = (__builtin_bit_cast(unsigned, x) >> 24) & 0x80u;
  const unsigned bits = BitsOfE4M3<unsigned>(x);
  return x == x && bits == 0x7fu ? sign | 0x7eu : bits;
}
CC_DEVICE unsigned ClampedBitsOfE5M2(float x) {
  const unsigned bits = BitsOfE5M2<unsigned>(x);
  return x == x && (bits & 0x7fu) == 0x7cu ? bits - 1 : bits;
}

}  // namespace coconet
