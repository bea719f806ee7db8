#pragma once

// Exp, Erf and Tanh lane by lane, by the GPU's library. Roots of f32 by the GPU's approximation.

namespace coconet {

CC_MAP1(Exp, ScalarExp(x))
CC_MAP1(Tanh, ScalarTanh(x))
CC_MAP1(Erf, ScalarErf(x))

template <int V>
CC_RARE Pack<float, V> RareRoots(Pack<float, V> x) {
  CC_UNROLL for (int i = 0; i < V; ++i) Put<float, V>(x, i, ScalarSqrt(Get(x, i)));
  return x;
}
/// For f32 as Quotients (prelude.h): one step of Newton's method rounds to nearest.
template <class T, int V>
CC_DEVICE Pack<T, V> Sqrt(Pack<T, V> a) {
  Pack<T, V> r;
  if constexpr (kSame<T, float>) {
    bool moderate = true;
    CC_UNROLL for (int i = 0; i < V; ++i) {
      const float x = Get(a, i), approximate = ApproximateRsqrt(x), root = x * approximate;
      const float rest = FusedMultiplyAdd(-root, root, x);
      Put<T, V>(r, i, FusedMultiplyAdd(rest, 0.5f * approximate, root));
      moderate = moderate & IsModerate<100>(x);
    }
    if (!moderate) r = RareRoots(a);
  } else {
    CC_UNROLL for (int i = 0; i < V; ++i) Put<T, V>(r, i, ScalarSqrt(Get(a, i)));
  }
  return r;
}
template <class T, int V>
CC_DEVICE Pack<T, V> Rsqrt(Pack<T, V> a) {
  if constexpr (kSame<T, float>) {
    Pack<T, V> r;
    bool moderate = true;
    CC_UNROLL for (int i = 0; i < V; ++i) {
      Put<T, V>(r, i, ApproximateRsqrt(Get(a, i)));
      moderate = moderate & IsModerate<100>(Get(a, i));
    }
    if (moderate) return r;
  }
  return Splat<V>(T(1)) / Sqrt(a);
}

}  // namespace coconet
