#include "bench/nodes/row_sender.h"

#include <algorithm>
#include <utility>

#include "coconet/base/status.h"

namespace coconet::bench {

absl::StatusOr<std::unique_ptr<RowSender>> RowSender::Make(Rank& rank, RankRows rows) {
  auto made = std::make_unique<RowSender>();
  const int ranks = rank.size();
  const int64_t block = rows.groups * rows.capacity * rows.row,
                row_bytes = rows.row * static_cast<int64_t>(SizeOf(rows.dtype));
  made->rank_ = &rank;
  made->step_ = {.kind = CollectiveStep::Kind::kAllToAll,
                 .dtype = rows.dtype,
                 .count = block,
                 .exchanged = {.outer = 1,
                               .inner = block,
                               .low = {ranks, 1},
                               .high = {ranks, 1},
                               .from_low = true,
                               .outer_end = 1,
                               .low_end = 1},
                 .rows = {.leaving = 0, .arriving = 1, .capacity = rows.capacity, .row = rows.row}};
  for (int64_t i = 0; i < ranks * rows.groups; ++i) {
    if (i / rows.groups == rank.rank()) continue;
    made->bytes_there_ += rows.leaving[i] * row_bytes;
    made->bytes_back_ += rows.arriving[i] * row_bytes;
  }
  const int64_t bytes = std::max<int64_t>(1, ranks * rows.groups * rows.capacity * row_bytes);
  ASSIGN_OR_RETURN(made->here_, Array::Allocate(bytes));
  ASSIGN_OR_RETURN(made->there_, Array::Allocate(bytes));
  made->rows_ = std::move(rows);
  return made;
}

absl::Status RowSender::Send() {
  return rank_->library().AllToAlls(
      {{&step_, here_.as<void>(), there_.as<void>(), rows_.leaving.data(), rows_.arriving.data()}});
}

absl::Status RowSender::SendBack() {
  return rank_->library().AllToAlls(
      {{&step_, there_.as<void>(), here_.as<void>(), rows_.arriving.data(), rows_.leaving.data()}});
}

}  // namespace coconet::bench
