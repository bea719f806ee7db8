#pragma once

// Multicast memory on the host: a table of the ranks' addresses takes the place of a switch's
// address, so that kernels that use one also run here. Part of the prelude.

namespace coconet {

template <class T>
struct Multicast {
  T* const* ranks;
};
template <class T>
CC_DEVICE bool IsThere(const Multicast<T>& all) {
  return all.ranks != nullptr;
}

/// Orders accesses to one memory by a multicast address and by an ordinary address.
CC_DEVICE void FenceAliases() {}

/// Sums over the ranks, in unspecified order, rounded to the type of memory.
template <int V, int kRanks>
CC_DEVICE Pack<float, V> MulticastSum(float* const* ranks, Index i) {
  Pack<float, V> x = LoadLanes<V>(ranks[0] + i);
  for (int r = 1; r < kRanks; ++r) x = x + LoadLanes<V>(ranks[r] + i);
  return x;
}
template <int V, int kRanks, class T>
CC_DEVICE Pack<unsigned short, V> MulticastSumF16(T* const* ranks, Index i) {
  Pack<float, V> x = FromF16(LoadLanes<V>(reinterpret_cast<const unsigned short*>(ranks[0] + i)));
  for (int r = 1; r < kRanks; ++r)
    x = x + FromF16(LoadLanes<V>(reinterpret_cast<const unsigned short*>(ranks[r] + i)));
  return ToF16(x);
}
template <int V, int kRanks, class T>
CC_DEVICE Pack<unsigned short, V> MulticastSumBF16(T* const* ranks, Index i) {
  Pack<float, V> x = FromBF16(LoadLanes<V>(reinterpret_cast<const unsigned short*>(ranks[0] + i)));
  for (int r = 1; r < kRanks; ++r)
    x = x + FromBF16(LoadLanes<V>(reinterpret_cast<const unsigned short*>(ranks[r] + i)));
  return ToBF16(x);
}
template <int V, int kRanks, class T, class R>
CC_DEVICE void MulticastStore(T* const* ranks, Index i, Pack<R, V> x) {
  for (int r = 0; r < kRanks; ++r) StoreLanes<V>(reinterpret_cast<R*>(ranks[r] + i), x);
}

}  // namespace coconet
