#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/control/board.h"
#include "runtime/control/hearsay.h"
#include "runtime/control/wire.h"
#include "runtime/mesh.h"
#include "runtime/node/wait.h"
#include "runtime/rank.h"

namespace coconet {

/// Exchange by messages from each rank to every other.
class WireExchange final : public Exchange {
 public:
  /// `tag` has no other user.
  /// `node`: the ranks that read `board`.
  WireExchange(std::shared_ptr<Wire> wire, int tag, int rank, int size, Board board,
               const Members& node, Hearsay hearsay, WaitTerms terms);

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override;

 private:
  /// What a wire accesses during a round.
  struct Round;
  absl::StatusOr<std::vector<std::string>> Gather(absl::string_view mine, Round& round);
  /// Sends each rank `mine`, and receives from each as many bytes as `theirs` says.
  absl::Status Trade(absl::string_view mine, std::vector<std::string>& theirs, Round& round);
  absl::Status Await(Round& round);

  std::shared_ptr<Wire> wire_;
  int tag_;
  int rank_;
  int size_;
  Board board_;
  Members node_;
  Hearsay hearsay_;
  WaitTerms terms_;
  absl::Status first_error_;
};

}  // namespace coconet
