#pragma once

// Exp, Erf and Tanh of whole registers at once; the C library's take a lane at a time, six times as
// long. Floats are within 1.4 units in the last place of the exact value
// (//jit/compile:host_functions_test); doubles are the C library's. A lane's result does not depend
// on V, but on whether the processor multiplies and adds with one rounding.

namespace coconet {

/// a * b + c, rounded once if the processor can.
template <int V>
CC_DEVICE Pack<float, V> MultiplyAdd(Pack<float, V> a, Pack<float, V> b, Pack<float, V> c) {
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_fma)
  return {__builtin_elementwise_fma(a.d, b.d, c.d)};
#endif
#else
#if defined(__AVX512F__)
  if constexpr (V == 16) return {__builtin_ia32_vfmaddps512_mask(a.d, b.d, c.d, -1, 4)};
#endif
#if defined(__FMA__)
  if constexpr (V == 8) return {__builtin_ia32_vfmaddps256(a.d, b.d, c.d)};
  if constexpr (V == 4) return {__builtin_ia32_vfmaddps(a.d, b.d, c.d)};
#endif
#endif
  return a * b + c;
}

/// c[0] * x^(N - 1) + ... + c[N - 1]
template <int V, int N>
CC_DEVICE Pack<float, V> Polynomial(Pack<float, V> x, const float (&c)[N]) {
  Pack<float, V> sum = Splat<V>(c[0]);
  CC_UNROLL for (int i = 1; i < N; ++i) sum = MultiplyAdd(sum, x, Splat<V>(c[i]));
  return sum;
}

template <int V>
CC_DEVICE Pack<float, V> Magnitude(Pack<float, V> x) {
  using Words = typename VectorOf<int, V>::Type;
  return {__builtin_bit_cast(decltype(x.d), __builtin_bit_cast(Words, x.d) & 0x7fffffff)};
}
template <int V>
CC_DEVICE Pack<float, V> WithSignOf(Pack<float, V> x, Pack<float, V> of) {
  using Words = typename VectorOf<int, V>::Type;
  const Words sign = __builtin_bit_cast(Words, of.d) & (-0x7fffffff - 1);
  return {__builtin_bit_cast(decltype(x.d), __builtin_bit_cast(Words, Magnitude(x).d) | sign)};
}

// Each function works on a register of V >= 4 lanes.

/// 2^n e^r with n a whole number and |r| <= ln(2) / 2 (S. Moshier, Cephes, expf).
struct ExpOfFloats {
  template <int V>
  CC_DEVICE Pack<float, V> Of(Pack<float, V> x) {
    using Words = typename VectorOf<int, V>::Type;
    constexpr float kLog2E = 1.44269504f;
    constexpr float kHigh = 0.693359375f, kLow = -2.12194440e-4f;  // of ln(2); kHigh has 10 bits
    constexpr float kRound = 0x1.8p23f;  // what is added to it is rounded to a whole number
    // Above 89 the result is infinite. Below -104 it is 0, as for lanes that a mask leaves out; it
    // is not computed by a product that underflows, which takes a hundred times as long. NaN stays.
    const auto is_zero = Less(x, Splat<V>(-104.f));
    x = Select(is_zero, Splat<V>(0.f), x);
    x = Select(Greater(x, Splat<V>(89.f)), Splat<V>(89.f), x);
    const Pack<float, V> shifted = MultiplyAdd(x, Splat<V>(kLog2E), Splat<V>(kRound));
    const Pack<float, V> n = shifted - Splat<V>(kRound);
    const Pack<float, V> r = MultiplyAdd(n, Splat<V>(-kLow), MultiplyAdd(n, Splat<V>(-kHigh), x));
    const float c[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                       4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
    const Pack<float, V> y = MultiplyAdd(Polynomial(r, c), r * r, r) + Splat<V>(1.f);
    // Two factors, so that neither overflows and a subnormal result is rounded once.
    const Words exponent = __builtin_bit_cast(Words, shifted.d) - __builtin_bit_cast(int, kRound),
                half = exponent >> 1;
    const Pack<float, V> low = {__builtin_bit_cast(decltype(x.d), (half + 127) << 23)},
                         high = {__builtin_bit_cast(decltype(x.d), (exponent - half + 127) << 23)};
    return Select(is_zero, Splat<V>(0.f), y * low * high);
  }
};

/// An odd polynomial near 0, else 1 - e^p(|x|) (N. Juffa, forums.developer.nvidia.com/t/78023).
struct ErfOfFloats {
  template <int V>
  CC_DEVICE Pack<float, V> Of(Pack<float, V> x) {
    const Pack<float, V> t = Magnitude(x), s = x * x;
    const float odd[] = {-5.96761703e-4f, 4.99119423e-3f,  -2.67681349e-2f,
                         1.12819925e-1f,  -3.76125336e-1f, 1.28379166e-1f};
    const Pack<float, V> near = MultiplyAdd(Polynomial(s, odd), x, x);
    const float first[] = {-1.72853470e-5f, 3.83197126e-4f},
                second[] = {-3.88396438e-3f, 2.42546219e-2f};
    Pack<float, V> p = MultiplyAdd(Polynomial(t, first), s, Polynomial(t, second));
    const float rest[] = {-1.06777877e-1f, -6.34846687e-1f, -1.28717512e-1f};
    for (float c : rest) p = MultiplyAdd(p, t, Splat<V>(c));
    Pack<float, V> far = Splat<V>(1.f) - ExpOfFloats::Of(MultiplyAdd(p, t, -t));
    far = Select(Greater(t, Splat<V>(4.f)), Splat<V>(1.f), far);
    return Select(Greater(t, Splat<V>(0.927734375f)), WithSignOf(far, x), near);
  }
};

/// An odd polynomial near 0, else 1 - 2 / (e^2|x| + 1) (Cephes, tanhf).
struct TanhOfFloats {
  template <int V>
  CC_DEVICE Pack<float, V> Of(Pack<float, V> x) {
    const Pack<float, V> t = Magnitude(x), s = x * x;
    const float odd[] = {-5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f,
                         1.33314422036e-1f, -3.33332819422e-1f};
    const Pack<float, V> near = MultiplyAdd(Polynomial(s, odd) * s, x, x);
    const Pack<float, V> one = Splat<V>(1.f);
    const Pack<float, V> far = one - Splat<V>(2.f) / (ExpOfFloats::Of(t + t) + one);
    return Select(Greater(t, Splat<V>(0.625f)), WithSignOf(far, x), near);
  }
};

template <class Function, int V>
CC_DEVICE Pack<float, V> ByRegisters(Pack<float, V> x) {
  if constexpr (V < 4) {
    Pack<float, 4> wide{};
    for (int i = 0; i < V; ++i) Put(wide, i, Get(x, i));
    wide = Function::Of(wide);
    for (int i = 0; i < V; ++i) Put(x, i, Get(wide, i));
    return x;
  } else {
    constexpr int kLanes = V < kRegisterWords ? V : kRegisterWords;
    struct Parts {
      Pack<float, kLanes> part[V / kLanes];
    };
    Parts parts = __builtin_bit_cast(Parts, x);
    CC_UNROLL for (int i = 0; i < V / kLanes; ++i) parts.part[i] = Function::Of(parts.part[i]);
    return __builtin_bit_cast(decltype(x), parts);
  }
}

#define CC_FUNCTION(Name)                                           \
  template <int V>                                                  \
  CC_DEVICE Pack<float, V> Name(Pack<float, V> x) {                 \
    return ByRegisters<Name##OfFloats>(x);                          \
  }                                                                 \
  template <int V>                                                  \
  CC_DEVICE Pack<double, V> Name(Pack<double, V> x) {               \
    for (int i = 0; i < V; ++i) Put(x, i, Scalar##Name(Get(x, i))); \
    return x;                                                       \
  }
CC_FUNCTION(Exp)
CC_FUNCTION(Tanh)
CC_FUNCTION(Erf)
#undef CC_FUNCTION

CC_MAP1(Sqrt, ScalarSqrt(x))
CC_MAP1(Rsqrt, T(1) / ScalarSqrt(x))

}  // namespace coconet
