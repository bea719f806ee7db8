#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// Control plane: small messages between ranks. Never used by Run. One object per rank, used by
/// that rank's thread only. Calls marked "collective" must be made by all ranks in the same order;
/// errors as of the interfaces in runtime/rank.h.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Collective. The bytes of all ranks, by rank.
  virtual absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) = 0;
  absl::Status Barrier();  // collective
  /// Collective. Rank 0's bytes.
  absl::StatusOr<std::string> Broadcast(absl::string_view mine);
  /// Collective. The maximum over all ranks.
  absl::StatusOr<double> Max(double mine);
  /// Collective. OK when every rank's status is OK; else, on all ranks, the status of the first
  /// failing rank, prefixed "rank N: ".
  absl::Status Agree(const absl::Status& mine);
  /// The first line of a rank's text that differs from rank 0's, and rank 0's; nullopt: the text
  /// has ended there.
  struct Difference {
    int rank = 0;
    std::optional<std::string> zero, other;
  };
  /// Collective. The lowest rank whose text differs from rank 0's; nullopt: all texts are the same.
  absl::StatusOr<std::optional<Difference>> FindDifference(const std::string& mine);
  /// Collective. OK when all ranks pass the same text; else InvalidArgument that quotes the first
  /// differing line.
  absl::Status CheckSame(absl::string_view what, const std::string& mine);
};

}  // namespace coconet
