#pragma once

// Bags of rows of a table, summed.

namespace coconet {

/// The indices of one bag, the weights of its rows (null: 1), and the number of indices of other
/// bags that follow in memory, whose rows may be prefetched.
struct Bag {
  const i32* indices;
  const f32* weights;
  Index count, following;
};

CC_DEVICE Index IndexAt(const i32* p) { return Get(Load<1>(p), 0); }

/// A bag of `length` indices that begins at index `at` of the `end` that are in this rank's memory.
CC_DEVICE Bag FixedBag(const i32* indices, const f32* weights, Index at, Index length, Index end) {
  return {indices + at, weights == nullptr ? nullptr : weights + at, length, end - at - length};
}
/// Bag `bag` of `bags`, whose begins are `offsets`, with `end` indices in all. A bag ends where the
/// next one begins, the last one at `end`; it lies within the indices, whatever the offsets are.
CC_DEVICE Bag RaggedBag(const i32* indices, const f32* weights, const i32* offsets, Index bag,
                        Index bags, Index end) {
  const auto within = [&](Index i) { return i < 0 ? Index(0) : i < end ? i : end; };
  const Index from = within(IndexAt(offsets + bag)),
              to = bag + 1 < bags ? within(IndexAt(offsets + bag + 1)) : end;
  return {indices + from, weights == nullptr ? nullptr : weights + from,
          to > from ? to - from : Index(0), to > from ? end - to : Index(0)};
}

/// How the rows of a table lie in this rank's memory: rows [begin, begin + count) of the table's
/// `extent`, `stride` elements apart; row 0 would be at `first`.
struct TableRows {
  Index stride, begin, count, extent;
};

/// How far ahead rows are prefetched: as in FBGEMM's kernels.
constexpr Index kRowsAhead = 16;

/// V sums, in packs of kPart that fit a register each.
template <int V, int kPart>
struct Sums {
  Pack<float, kPart> part[V / kPart];
};
/// The number of elements that are loaded and summed as one pack if V are wanted.
template <int V, class T, int kMost = kPacksAnywhere ? kRegisterWords : int(16 / sizeof(T))>
constexpr int kSumsPart = V < kMost ? V : kMost;
template <int V, class T>
using SumsOf = Sums<V, kSumsPart<V, T>>;

/// V elements of the sum (or mean) of a bag's rows; `first`: their place in row 0. Rows that the
/// rank lacks add nothing; the mean counts the rows that the table has.
template <int V, bool kMean, class T>
CC_DEVICE SumsOf<V, T> PoolRows(const T* first, const TableRows& rows, const Bag& bag) {
  constexpr int kPart = kSumsPart<V, T>, kParts = V / kPart;
  SumsOf<V, T> sum;
  CC_UNROLL for (int p = 0; p < kParts; ++p) sum.part[p] = Splat<kPart>(0.0f);
  Index found = 0;
  const Index last_ahead = bag.count + bag.following - kRowsAhead;
  for (Index k = 0; k < bag.count; ++k) {
    if (kPrefetches) {
      const Index next = k < last_ahead ? k + kRowsAhead : k;
      const T* const ahead = first + IndexAt(bag.indices + next) * rows.stride;
      CC_UNROLL for (int line = 0; line < int(V * sizeof(T) + 63) / 64; ++line)
          Prefetch(reinterpret_cast<const char*>(ahead) + 64 * line);
    }
    const Index row = IndexAt(bag.indices + k);
    if (kMean) found += row >= 0 && row < rows.extent ? 1 : 0;
    if (row < rows.begin || row >= rows.begin + rows.count) continue;
    const T* const from = first + row * rows.stride;
    if (bag.weights == nullptr) {
      CC_UNROLL for (int p = 0; p < kParts; ++p) sum.part[p] =
          sum.part[p] + LoadAnywhere<kPart>(from + p * kPart);
    } else {
      const Pack<float, kPart> weight = Splat<kPart>(Get(Load<1>(bag.weights + k), 0));
      CC_UNROLL for (int p = 0; p < kParts; ++p) sum.part[p] =
          sum.part[p] + weight * LoadAnywhere<kPart>(from + p * kPart);
    }
  }
  if (kMean && found > 1) {
    const Pack<float, kPart> count = Splat<kPart>(float(found));
    CC_UNROLL for (int p = 0; p < kParts; ++p) sum.part[p] = sum.part[p] / count;
  }
  return sum;
}

/// Whether V elements from `i` on are neighbours in memory, in one row of a bag's result. If tables
/// have a single row, a row of `map` may be the rows of several tables.
template <int V, int R>
CC_DEVICE bool AreOfOneBag(const BroadcastMap<R>& map, Index i, const Divisor& columns) {
  if (map.stride[R - 1] != 1 || !IsInRow<V>(map, i)) return false;
  return map.dim[R - 1].by == columns.by || i - Quotient(i, columns) * columns.by + V <= columns.by;
}

/// V elements of an embedding bag from `i` on. `map` maps to the elements of row 0 of `table`;
/// `bag_of` gives the bag of a row of the result, which has `columns` elements.
template <int V, bool kMean, class T, int R, class BagOf>
CC_DEVICE SumsOf<V, T> LoadSums(const T* table, Index i, const BroadcastMap<R>& map,
                                const TableRows& rows, const Divisor& columns, BagOf&& bag_of) {
  if (V == 1 || AreOfOneBag<V>(map, i, columns)) {
    // Mostly a row of the map is a row of the result.
    const Index bag = R > 1 && map.dim[R - 1].by == columns.by ? BroadcastMap<R>::RowOf(map, i)
                                                               : Quotient(i, columns);
    return PoolRows<V, kMean>(table + BroadcastMap<R>::Offset(map, i), rows, bag_of(bag));
  }
  SumsOf<V, T> r;
  if constexpr (kPacksAnywhere && V > kRegisterWords) {
    CC_UNROLL for (int half = 0; half < 2; ++half) {
      const auto sums =
          LoadSums<V / 2, kMean>(table, i + half * (V / 2), map, rows, columns, bag_of);
      constexpr int kParts = V / 2 / kRegisterWords;
      CC_UNROLL for (int p = 0; p < kParts; ++p) r.part[half * kParts + p] = sums.part[p];
    }
  } else {
    constexpr int kPart = kSumsPart<V, T>;
    for (int lane = 0; lane < V; ++lane)
      Put<float, kPart>(r.part[lane / kPart], lane % kPart,
                        Get(PoolRows<1, kMean>(table + BroadcastMap<R>::Offset(map, i + lane), rows,
                                               bag_of(Quotient(i + lane, columns)))
                                .part[0],
                            0));
  }
  return r;
}

/// Elements of bags that are summed together, in registers: each pack goes through all rows of its
/// bag. GPUs have many threads, and few registers for each.
constexpr int kPooledTogether = kPacksAnywhere ? 8 * (kRegisterWords < 8 ? kRegisterWords : 8) : 1;

/// LoadSums as a pack; kPooledTogether elements are Sums, because compilers keep a vector of so
/// many elements in memory.
template <int V, bool kMean, class T, int R, class BagOf>
CC_DEVICE auto LoadPooled(const T* table, Index i, const BroadcastMap<R>& map,
                          const TableRows& rows, const Divisor& columns, BagOf&& bag_of) {
  const SumsOf<V, T> sums = LoadSums<V, kMean>(table, i, map, rows, columns, bag_of);
  if constexpr (kPacksAnywhere && V == kPooledTogether)
    return sums;
  else
    return __builtin_bit_cast(Pack<float, V>, sums);
}

template <bool kStream, int V, int kPart, class T>
CC_DEVICE void Store(T* p, const Sums<V, kPart>& x) {
  CC_UNROLL for (int i = 0; i < V / kPart; ++i) Store<kStream>(p + i * kPart, x.part[i]);
}
template <bool kStream, int V, int kPart, int kRanks, class T>
CC_DEVICE void StorePeers(const Multicast<T>& all, T* const (&peers)[kRanks], Index i,
                          const Sums<V, kPart>& x) {
  CC_UNROLL for (int p = 0; p < V / kPart; ++p)
      StorePeers<kStream>(all, peers, i + p * kPart, x.part[p]);
}

}  // namespace coconet
