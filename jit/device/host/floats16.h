#pragma once

// Conversions between 16-bit floats, as raw lanes, and f32. Part of the prelude.

namespace coconet {

template <int V>
CC_DEVICE Pack<float, V> FromBF16(Pack<unsigned short, V> x) {
  const Pack<unsigned, V> wide = ConvertLanes<unsigned>(x);
  return {__builtin_bit_cast(typename VectorOf<float, V>::Type, wide.d << 16)};
}
template <int V>
CC_DEVICE Pack<unsigned short, V> ToBF16(Pack<float, V> x) {
  using U = typename VectorOf<unsigned, V>::Type;
  const U bits = __builtin_bit_cast(U, x.d);
  const U rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const U quiet = (bits >> 16) | 0x40u;  // NaN stays NaN
  const U result = (bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded;
  return ConvertLanes<unsigned short>(Pack<unsigned, V>{result});
}
/// Adds the upper half of the word to the lower half of x's bits and truncates: rounds away from 0
/// if that carries. Infinities and NaNs are as in ToBF16.
template <int V>
CC_DEVICE Pack<unsigned short, V> ToBF16ByWord(Pack<float, V> x, Pack<unsigned, V> words) {
  using U = typename VectorOf<unsigned, V>::Type;
  const U bits = __builtin_bit_cast(U, x.d);
  const U drawn = (bits + (words.d >> 16)) >> 16;
  const U nearest = ConvertLanes<unsigned>(ToBF16(x)).d;
  const U result = (bits & 0x7f800000u) == 0x7f800000u ? nearest : drawn;
  return ConvertLanes<unsigned short>(Pack<unsigned, V>{result});
}
template <int V>
CC_DEVICE Pack<float, V> FromF16(Pack<unsigned short, V> x) {
#if defined(__AVX512F__) && !defined(__clang__)
  typedef short H16 __attribute__((vector_size(32)));
  typedef float F16 __attribute__((vector_size(64)));
  if constexpr (V % 16 == 0) {
    struct In {
      H16 part[V / 16];
    } in = __builtin_bit_cast(In, x.d);
    struct Out {
      F16 part[V / 16];
    } out;
    for (int i = 0; i < V / 16; ++i)
      out.part[i] =
          __builtin_ia32_vcvtph2ps512_mask(in.part[i], F16{}, static_cast<unsigned short>(-1), 4);
    return {__builtin_bit_cast(typename VectorOf<float, V>::Type, out)};
  }
#endif
#if defined(__F16C__)
  typedef short H8 __attribute__((vector_size(16)));
  typedef float F8 __attribute__((vector_size(32)));
  if constexpr (V % 8 == 0) {
    struct In {
      H8 part[V / 8];
    } in = __builtin_bit_cast(In, x.d);
    struct Out {
      F8 part[V / 8];
    } out;
    for (int i = 0; i < V / 8; ++i) out.part[i] = __builtin_ia32_vcvtph2ps256(in.part[i]);
    return {__builtin_bit_cast(typename VectorOf<float, V>::Type, out)};
  }
#endif
  // The multiplication corrects the exponent and normalises subnormals; infinities and NaNs are
  // patched.
  using U = typename VectorOf<unsigned, V>::Type;
  using F = typename VectorOf<float, V>::Type;
  const U h = ConvertLanes<unsigned>(x).d;
  const U magnitude = (h & 0x7fffu) << 13;
  const F scaled = __builtin_bit_cast(F, magnitude) * 0x1p112f;
  const U finite = __builtin_bit_cast(U, scaled);
  const U special = magnitude | 0x7f800000u;
  const U bits = ((h & 0x7c00u) == 0x7c00u ? special : finite) | ((h & 0x8000u) << 16);
  return {__builtin_bit_cast(F, bits)};
}
template <int V>
CC_DEVICE Pack<unsigned short, V> ToF16(Pack<float, V> x) {
#if defined(__AVX512F__) && !defined(__clang__)
  typedef short H16 __attribute__((vector_size(32)));
  typedef float F16 __attribute__((vector_size(64)));
  if constexpr (V % 16 == 0) {
    struct In {
      F16 part[V / 16];
    } in = __builtin_bit_cast(In, x.d);
    struct Out {
      H16 part[V / 16];
    } out;
    for (int i = 0; i < V / 16; ++i)
      out.part[i] =
          __builtin_ia32_vcvtps2ph512_mask(in.part[i], 0, H16{}, static_cast<unsigned short>(-1));
    return {__builtin_bit_cast(typename VectorOf<unsigned short, V>::Type, out)};
  }
#endif
#if defined(__F16C__)
  typedef short H8 __attribute__((vector_size(16)));
  typedef float F8 __attribute__((vector_size(32)));
  if constexpr (V % 8 == 0) {
    struct In {
      F8 part[V / 8];
    } in = __builtin_bit_cast(In, x.d);
    struct Out {
      H8 part[V / 8];
    } out;
    for (int i = 0; i < V / 8; ++i) out.part[i] = __builtin_ia32_vcvtps2ph256(in.part[i], 0);
    return {__builtin_bit_cast(typename VectorOf<unsigned short, V>::Type, out)};
  }
#endif
  // Rounds to nearest even: normals by integer arithmetic; subnormals by adding 0.5f, whose last
  // place is theirs.
  using U = typename VectorOf<unsigned, V>::Type;
  using F = typename VectorOf<float, V>::Type;
  const U bits = __builtin_bit_cast(U, x.d);
  const U sign = (bits >> 16) & 0x8000u;
  const U magnitude = bits & 0x7fffffffu;
  const U normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  const U subnormal = __builtin_bit_cast(U, __builtin_bit_cast(F, magnitude) + 0.5f) - 0x3f000000u;
  const U infinite = U{} + 0x7c00u;
  const U nan = U{} + 0x7e00u;
  U half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x477ff000u ? infinite : half;
  half = magnitude > 0x7f800000u ? nan : half;
  return ConvertLanes<unsigned short>(Pack<unsigned, V>{half | sign});
}

}  // namespace coconet
