#pragma once

// Loads of a tensor that is joined from several.

namespace coconet {

/// One of the tensors that a tensor is joined from: it has [begin, end) of each row of `row`
/// elements. `i` is the element of the joined tensor that is asked for.
template <class T>
struct Joint {
  const T* base;
  Index i;
  const Divisor& row;
  Index begin, end;
};

/// The number of elements, from `i` on, that the tensor with element `i` has; joints in their
/// order.
template <class T, class... More>
CC_DEVICE Index LeftOf(const Joint<T>& first, const More&... more) {
  const Index at = first.i - Quotient(first.i, first.row) * first.row.by;
  if constexpr (sizeof...(More) > 0) {
    if (at >= first.end) return LeftOf(more...);
  }
  return first.end - at;
}
/// V elements from `lane` behind `i` on; the tensor with the first of them has them all.
template <int V, class T, class... More>
CC_DEVICE Pack<Compute<T>, V> LoadJoint(int lane, const Joint<T>& first, const More&... more) {
  const Index i = first.i + lane, outer = Quotient(i, first.row), at = i - outer * first.row.by;
  if constexpr (sizeof...(More) > 0) {
    if (at >= first.end) return LoadJoint<V>(lane, more...);
  }
  const T* const from = first.base + (outer * (first.end - first.begin) + (at - first.begin));
  return LoadAnywhere<V>(from);
}
/// V elements from `i` on, loaded at once if one tensor has them all.
template <int V, class T, class... More>
CC_DEVICE Pack<Compute<T>, V> LoadJoined(const Joint<T>& first, const More&... more) {
  if (V == 1 || LeftOf(first, more...) >= V) return LoadJoint<V>(0, first, more...);
  Pack<Compute<T>, V> r;
  for (int lane = 0; lane < V; ++lane)
    Put<Compute<T>, V>(r, lane, Get(LoadJoint<1>(lane, first, more...), 0));
  return r;
}

}  // namespace coconet
