#pragma once

// Functions of bits.

namespace coconet {

CC_MAP1(BitNot, T(~x))
CC_MAP2(BitAnd, T(x& y))
CC_MAP2(BitOr, T(x | y))
CC_MAP2(BitXor, T(x ^ y))

/// Whether `places` is a valid shift of `bits` bits.
template <class T>
CC_DEVICE bool IsShift(T places, int bits) {
  return places >= T(0) && places < T(bits);
}
// Otherwise all bits are shifted out; copies of the sign remain.
CC_MAP2(ShiftLeft, IsShift(y, 8 * sizeof(T)) ? T(u64(x) << y) : T(0))
CC_MAP2(ShiftRight, IsShift(y, 8 * sizeof(T)) ? T(x >> y) : x < T(0) ? T(~T(0)) : T(0))

/// Reinterprets the bits of numbers of type From as numbers of type To, which has as many bits.
template <class To, class From, class T, int V>
CC_DEVICE Pack<Compute<To>, V> BitCastTo(Pack<T, V> x) {
  return FromRaw<To, V>(__builtin_bit_cast(Pack<Raw<To>, V>, ToRaw<From, V>(x)));
}

/// Shifts the bits that `a` has in memory, as a Stored.
template <class Stored, class T, int V>
CC_DEVICE Pack<T, V> ShiftRightLogical(Pack<T, V> a, Pack<T, V> b) {
  constexpr int kBits = 8 * sizeof(Stored);
  constexpr u64 kMask = ~u64(0) >> (64 - kBits);
  Pack<T, V> r;
  CC_UNROLL for (int i = 0; i < V; ++i) {
    const T places = Get(b, i);
    Put<T, V>(r, i, IsShift(places, kBits) ? T((u64(Get(a, i)) & kMask) >> places) : T(0));
  }
  return r;
}

}  // namespace coconet
