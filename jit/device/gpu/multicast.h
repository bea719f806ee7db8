#pragma once

// Multicast memory: one address for all ranks of a node. The NVSwitch adds up loads and repeats
// stores. Part of the prelude.

namespace coconet {

template <class T>
struct Multicast {
  T* ranks;  // for multimem instructions only; null: no multicast address
};

#if CC_MULTIMEM

template <class T>
CC_DEVICE bool IsThere(const Multicast<T>& all) {
  return all.ranks != nullptr;
}

/// Sums over the ranks, in unspecified order, rounded to the type of memory.
template <int V, int kRanks>
CC_DEVICE Pack<float, V> MulticastSum(float* ranks, Index i) {
  Pack<unsigned, V> r;
  MultimemSumF32<V>(r.d, ranks + i);
  return __builtin_bit_cast(Pack<float, V>, r);
}
template <int V, int kRanks, class T>
CC_DEVICE Pack<unsigned short, V> MulticastSumF16(T* ranks, Index i) {
  Pack<unsigned, V / 2> r;
  MultimemSumF16<V / 2>(r.d, ranks + i);
  return __builtin_bit_cast(Pack<unsigned short, V>, r);
}
template <int V, int kRanks, class T>
CC_DEVICE Pack<unsigned short, V> MulticastSumBF16(T* ranks, Index i) {
  Pack<unsigned, V / 2> r;
  MultimemSumBF16<V / 2>(r.d, ranks + i);
  return __builtin_bit_cast(Pack<unsigned short, V>, r);
}
/// Stores words of any content; R only determines their size.
template <int V, int kRanks, class T, class R>
CC_DEVICE void MulticastStore(T* ranks, Index i, Pack<R, V> x) {
  constexpr int kWords = sizeof(R) * V / 4;
  const auto w = __builtin_bit_cast(Pack<unsigned, kWords>, x);
  MultimemStore<kWords>(reinterpret_cast<unsigned*>(ranks + i), w.d);
}

#else

template <class T>
CC_DEVICE constexpr bool IsThere(const Multicast<T>&) {
  return false;
}
CC_DEVICE void FenceAliases() {}
template <int V, int kRanks>
CC_DEVICE Pack<float, V> MulticastSum(float*, Index) {
  return {};
}
template <int V, int kRanks, class T>
CC_DEVICE Pack<unsigned short, V> MulticastSumF16(T*, Index) {
  return {};
}
template <int V, int kRanks, class T>
CC_DEVICE Pack<unsigned short, V> MulticastSumBF16(T*, Index) {
  return {};
}
template <int V, int kRanks, class T, class R>
CC_DEVICE void MulticastStore(T*, Index, Pack<R, V>) {}

#endif

}  // namespace coconet
