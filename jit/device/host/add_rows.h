#pragma once

// Rows that are added by index (scatter.h): a block is a thread.

namespace coconet {

/// to[i] += weight * from[i]
template <class T>
CC_DEVICE void AddRun(f32* to, const T* from, float weight, Index count) {
  constexpr int V = kRegisterWords;
  const Pack<float, V> factor = Splat<V>(weight);
  Index i = 0;
  for (; i + V <= count; i += V) {
    const Pack<float, V> sum = LoadAnywhere<V>(to + i) + factor * LoadAnywhere<V>(from + i);
    Store<kCached>(to + i, sum);
  }
  for (; i < count; ++i) {
    const float sum = Get(Load<1>(to + i), 0) + weight * Get(Load<1>(from + i), 0);
    Store<kCached>(to + i, Splat<1>(sum));
  }
}

template <class T>
CC_DEVICE void AddRows(const Grid& grid, const Scatter<T>& s) {
  const RowRange own = OwnRows(grid, s.extent);
  const Index pitch = RowPitch(s);
  for (Index row = own.begin; row < own.end; ++row) {
    for (Index run = 0; run < s.of_columns.runs; ++run) {
      f32* const to = s.rows + row * pitch + run * s.of_columns.pitch;
      for (Index i = 0; i < s.of_columns.length; ++i) Store<kCached>(to + i, Splat<1>(0.0f));
    }
  }
  for (Index first = 0; first < s.of_rows.runs; ++first) {
    for (Index at = 0; at < s.of_rows.length; ++at) {
      const Index k = first * s.of_rows.pitch + at, row = IndexAt(s.indices + k);
      if (row < own.begin || row >= own.end) continue;
      const float weight = WeightOf(s, k);
      for (Index run = 0; run < s.of_columns.runs; ++run) {
        const Index begin = run * s.of_columns.pitch;
        AddRun(s.rows + row * pitch + begin, UpdateOf(s, k) + begin, weight, s.of_columns.length);
      }
    }
  }
}

}  // namespace coconet
