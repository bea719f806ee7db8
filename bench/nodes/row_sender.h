#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/baselines/array.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// Rows that each rank has for each: groups of `capacity` rows of `row` elements, of which the
/// first ones are in use. Numbers in use are by peer, then by group; what rank a has as leaving for
/// b, b has as arriving from a.
struct RankRows {
  DType dtype{};
  int64_t groups = 0, capacity = 0, row = 0;
  std::vector<int32_t> leaving, arriving;
};

/// Sends the rows in use by the library of the rank's world, with nothing computed.
class RowSender {
 public:
  static absl::StatusOr<std::unique_ptr<RowSender>> Make(Rank& rank, RankRows rows);
  /// Collective: one AllToAll of the rows that leave.
  absl::Status Send();
  /// Collective: one AllToAll of the rows that have arrived, back to where they came from.
  absl::Status SendBack();
  /// That Send, and SendBack, send to other ranks.
  int64_t bytes_there() const { return bytes_there_; }
  int64_t bytes_back() const { return bytes_back_; }

 private:
  Rank* rank_ = nullptr;
  RankRows rows_;
  CollectiveStep step_;
  Array here_, there_;
  int64_t bytes_there_ = 0, bytes_back_ = 0;
};

}  // namespace coconet::bench
