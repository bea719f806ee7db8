#pragma once

// Conversions between 8-bit floats, as raw lanes, and f32, two at a time. Part of the prelude. NaNs
// of any sign and payload become 0x7f.

namespace coconet {

/// An f8e5m2 is the upper half of an f16.
template <int V>
CC_DEVICE Pack<float, V> FromE5M2(Pack<unsigned char, V> x) {
  CC_LANES(float, FloatOfHalf(static_cast<unsigned short>(x.d[i] << 8)));
}
template <int V>
CC_DEVICE Pack<float, V> FromE4M3(Pack<unsigned char, V> x) {
  Pack<float, V> r;
  if constexpr (V == 1) {
    float unused;
    FloatsOfE4M3s(x.d[0], r.d[0], unused);
  } else {
    const auto pairs = __builtin_bit_cast(Pack<unsigned short, V / 2>, x);
    CC_UNROLL for (int i = 0; i < V; i += 2) FloatsOfE4M3s(pairs.d[i / 2], r.d[i], r.d[i + 1]);
  }
  return r;
}

/// The instruction clamps: what would be rounded to more than 448 is made NaN before.
CC_DEVICE float WithinE4M3(float x) {
  return CC_LIBRARY(fabsf)(x) > 464.0f ? __builtin_bit_cast(float, 0x7fffffffu) : x;
}
/// The instruction clamps: from 61440 on the greatest number is made the next one, infinity.
CC_DEVICE unsigned short InfiniteE5M2s(unsigned short pair, float low, float high) {
  const unsigned of_low = CC_LIBRARY(fabsf)(low) >= 61440.0f,
                 of_high = CC_LIBRARY(fabsf)(high) >= 61440.0f;
  return static_cast<unsigned short>(pair + of_low + (of_high << 8));
}

template <int V>
CC_DEVICE Pack<unsigned char, V> ToE4M3(Pack<float, V> x) {
  if constexpr (V == 1) {
    return {{static_cast<unsigned char>(E4M3sOfFloats(WithinE4M3(x.d[0]), 0.0f))}};
  } else {
    Pack<unsigned short, V / 2> pairs;
    CC_UNROLL for (int i = 0; i < V; i += 2) pairs.d[i / 2] =
        E4M3sOfFloats(WithinE4M3(x.d[i]), WithinE4M3(x.d[i + 1]));
    return __builtin_bit_cast(Pack<unsigned char, V>, pairs);
  }
}
template <int V>
CC_DEVICE Pack<unsigned char, V> ToE5M2(Pack<float, V> x) {
  if constexpr (V == 1) {
    const unsigned short pair = E5M2sOfFloats(x.d[0], 0.0f);
    return {{static_cast<unsigned char>(InfiniteE5M2s(pair, x.d[0], 0.0f))}};
  } else {
    Pack<unsigned short, V / 2> pairs;
    CC_UNROLL for (int i = 0; i < V; i += 2) pairs.d[i / 2] =
        InfiniteE5M2s(E5M2sOfFloats(x.d[i], x.d[i + 1]), x.d[i], x.d[i + 1]);
    return __builtin_bit_cast(Pack<unsigned char, V>, pairs);
  }
}

}  // namespace coconet
