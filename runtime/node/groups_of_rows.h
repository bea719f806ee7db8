#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/types/span.h"
#include "coconet/base/dtype.h"
#include "runtime/plan.h"

namespace coconet {

/// Groups of `capacity` rows, one after the other in memory, of which the first ones are in use: as
/// many as the group's count says, none or all where that is negative or too large.
struct GroupsOfRows {
  absl::Span<const int32_t> counts;  // one per group
  int64_t capacity = 0;
  int64_t row_bytes = 0;

  int64_t InUse(int64_t group) const { return std::clamp<int64_t>(counts[group], 0, capacity); }
  int64_t RowsInUse() const {
    int64_t rows = 0;
    for (int64_t group = 0; group < static_cast<int64_t>(counts.size()); ++group)
      rows += InUse(group);
    return rows;
  }
  int64_t BytesInUse() const { return RowsInUse() * row_bytes; }

  /// Think of the rows in use without those between them: calls `take(offset, bytes)` for each run
  /// of memory, by its offset from the first group, that holds a part of bytes [begin, end) of
  /// them.
  template <class Take>
  void ForEach(int64_t begin, int64_t end, Take take) const {
    int64_t before = 0;  // bytes in use of the groups before
    for (int64_t group = 0; group < static_cast<int64_t>(counts.size()) && before < end; ++group) {
      const int64_t bytes = InUse(group) * row_bytes;
      const int64_t from = std::max(begin - before, int64_t{0}), to = std::min(end - before, bytes);
      if (from < to) take(group * capacity * row_bytes + from, to - from);
      before += bytes;
    }
  }
};

/// The rows of block `index` of an all-to-all with `step.rows`, whose buffer of counts is at
/// `counts`.
inline GroupsOfRows GroupsOfBlock(const CollectiveStep& step, const int32_t* counts, int index) {
  const CollectiveStep::Rows& rows = step.rows;
  return {.counts = {counts + rows.first + index * rows.stride,
                     static_cast<size_t>(step.count / (rows.capacity * rows.row))},
          .capacity = rows.capacity,
          .row_bytes = rows.row * static_cast<int64_t>(SizeOf(step.dtype))};
}

}  // namespace coconet
