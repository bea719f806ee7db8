#pragma once

// Activation functions of neural networks, by Exp and Erf.

namespace coconet {

/// Uses exp(-|x|), which cannot overflow, so that small results do not become 0.
template <class T, int V>
CC_DEVICE Pack<T, V> Sigmoid(Pack<T, V> x) {
  const Pack<T, V> e = Exp(-Abs(x)), one = Splat<V>(T(1));
  return Select(Less(x, Splat<V>(T(0))), e, one) / (one + e);
}
template <class T, int V>
CC_DEVICE Pack<T, V> Silu(Pack<T, V> x) {
  return x * Sigmoid(x);
}
template <class T, int V>
CC_DEVICE Pack<T, V> Gelu(Pack<T, V> x) {
  const Pack<T, V> share = Splat<V>(T(1)) + Erf(x * Splat<V>(T(0.70710678118654752440)));
  return Splat<V>(T(0.5)) * x * share;
}

}  // namespace coconet
