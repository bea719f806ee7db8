#pragma once

// Rows that are added to rows of a result by index.

namespace coconet {

/// `runs` runs of `length` elements that begin `pitch` apart: a rank's part of a tensor that is
/// sliced over some dimension.
struct Runs {
  Index runs, length, pitch;
};

/// A tensor of `extent` rows in f32. One row of `updates` serves `per_update` successive indices k:
/// it is multiplied by weights[k] (null: 1) and added to row indices[k]. `of_rows` are the places k
/// that the rank has, `of_columns` the elements of a row.
template <class T>
struct Scatter {
  const T* updates;
  const i32* indices;
  const f32* weights;
  f32* rows;
  Index extent;
  Runs of_rows, of_columns;
  Divisor per_update;
};

/// Elements from row to row, of updates and of the result.
template <class T>
CC_DEVICE Index RowPitch(const Scatter<T>& s) {
  return s.of_columns.runs * s.of_columns.pitch;
}
template <class T>
CC_DEVICE const T* UpdateOf(const Scatter<T>& s, Index k) {
  return s.updates + Quotient(k, s.per_update) * RowPitch(s);
}
template <class T>
CC_DEVICE float WeightOf(const Scatter<T>& s, Index k) {
  return s.weights == nullptr ? 1.0f : Get(Load<1>(s.weights + k), 0);
}

/// Rows of the result that a block adds to.
struct RowRange {
  Index begin, end;
};
CC_DEVICE RowRange OwnRows(const Grid& grid, Index extent) {
  return {extent * grid.BlockId() / grid.GridSize(),
          extent * (grid.BlockId() + 1) / grid.GridSize()};
}

/// Computes all rows, by all blocks of the rank: each block reads all indices, and adds the updates
/// of its own rows one after the other, so that the sums do not depend on the grid. Defined in the
/// dialect's add_rows.h.
template <class T>
CC_DEVICE void AddRows(const Grid& grid, const Scatter<T>& s);

}  // namespace coconet
