#pragma once

// Rows that are added by index (scatter.h): a block's threads have the columns of its rows.

namespace coconet {

template <class T>
CC_DEVICE void AddRows(const Grid& grid, const Scatter<T>& s) {
  CC_SHARED(i32, rows, CC_MAX_THREADS);
  const RowRange own = OwnRows(grid, s.extent);
  const Index pitch = RowPitch(s);
  const int thread = grid.ThreadId(), threads = grid.BlockSize();
  // A thread is the only one that stores to its columns, so no other waits for what it adds.
  const auto for_columns = [&](auto&& f) {
    for (Index run = 0; run < s.of_columns.runs; ++run) {
      for (Index i = thread; i < s.of_columns.length; i += threads) f(run * s.of_columns.pitch + i);
    }
  };
  for (Index row = own.begin; row < own.end; ++row)
    for_columns([&](Index i) { Store<kCached>(s.rows + row * pitch + i, Splat<1>(0.0f)); });
  for (Index first = 0; first < s.of_rows.runs; ++first) {
    const Index begin = first * s.of_rows.pitch;
    for (Index at = 0; at < s.of_rows.length; at += threads) {
      if (at + thread < s.of_rows.length) {
        const Index row = IndexAt(s.indices + begin + at + thread);
        rows[thread] = row >= own.begin && row < own.end ? i32(row) : -1;
      }
      grid.Sync();
      for (Index k = 0; k < threads && at + k < s.of_rows.length; ++k) {
        if (rows[k] < 0) continue;
        f32* const to = s.rows + Index(rows[k]) * pitch;
        const T* const from = UpdateOf(s, begin + at + k);
        const float weight = WeightOf(s, begin + at + k);
        for_columns([&](Index i) {
          const float sum = Get(Load<1>(to + i), 0) + weight * Get(Load<1>(from + i), 0);
          Store<kCached>(to + i, Splat<1>(sum));
        });
      }
      grid.Sync();  // the rows have been read
    }
  }
}

}  // namespace coconet
