#pragma once

// Conversions between 8-bit floats, as raw lanes, and f32. Part of the prelude.

namespace coconet {

/// An f8e5m2 is the upper half of an f16.
template <int V>
CC_DEVICE Pack<float, V> FromE5M2(Pack<unsigned char, V> x) {
  using H = typename VectorOf<unsigned short, V>::Type;
  const H bytes = ConvertLanes<unsigned short>(x).d;
  return FromF16(Pack<unsigned short, V>{static_cast<H>(bytes << 8)});
}
/// As an f16 the exponent is too small by 8; NaNs are patched.
template <int V>
CC_DEVICE Pack<float, V> FromE4M3(Pack<unsigned char, V> x) {
  if constexpr (kByHalves<float, V>) {
    const auto of = __builtin_bit_cast(Halves<unsigned char, V>, x);
    const Halves<float, V> r = {FromE4M3(of.half[0]), FromE4M3(of.half[1])};
    return __builtin_bit_cast(Pack<float, V>, r);
  } else {
    using H = typename VectorOf<unsigned short, V>::Type;
    using U = typename VectorOf<unsigned, V>::Type;
    using F = typename VectorOf<float, V>::Type;
    const H bytes = ConvertLanes<unsigned short>(x).d;
    const H shifted = static_cast<H>((bytes & 0x7f) << 7 | (bytes & 0x80) << 8);
    const U bits = __builtin_bit_cast(U, FromF16(Pack<unsigned short, V>{shifted}).d * 256.0f);
    const U nan = bits | 0x7fc00000u;
    return {__builtin_bit_cast(F, (bits & 0x7fffffffu) > 0x43e00000u ? nan : bits)};
  }
}

/// Both round to nearest even.
#define CC_TO_FLOAT8(Name, BitsOf)                                             \
  template <int V>                                                             \
  CC_DEVICE Pack<unsigned char, V> Name(Pack<float, V> x) {                    \
    if constexpr (kByHalves<float, V>) {                                       \
      const auto of = __builtin_bit_cast(Halves<float, V>, x);                 \
      const Halves<unsigned char, V> r = {Name(of.half[0]), Name(of.half[1])}; \
      return __builtin_bit_cast(Pack<unsigned char, V>, r);                    \
    } else {                                                                   \
      using U = typename VectorOf<unsigned, V>::Type;                          \
      return ConvertLanes<unsigned char>(Pack<unsigned, V>{BitsOf<U>(x.d)});   \
    }                                                                          \
  }
CC_TO_FLOAT8(ToE4M3, BitsOfE4M3)
CC_TO_FLOAT8(ToE5M2, BitsOfE5M2)
#undef CC_TO_FLOAT8

}  // namespace coconet
