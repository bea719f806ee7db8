#pragma once

#include <mpi.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/control/board.h"
#include "runtime/control/hearsay.h"
#include "runtime/mesh.h"
#include "runtime/node/wait.h"
#include "runtime/rank.h"

namespace coconet {

/// Exchange between MPI processes: nonblocking collectives, polled, so that a missing peer becomes
/// an error. Does not own `comm`, in which it must be the only user of collectives.
class MpiExchange final : public Exchange {
 public:
  MpiExchange(MPI_Comm comm, int rank, int size, WaitTerms terms)
      : comm_(comm), rank_(rank), size_(size), terms_(terms) {}

  /// From now on a rank that leaves ends waits at once. `node`: the ranks that read `board`.
  void Watch(Board board, const Members& node, const Hearsay& hearsay) {
    board_ = std::move(board);
    node_ = node;
    hearsay_ = hearsay;
  }
  /// Set once the ranks know how many of them share a machine.
  void SetTerms(const WaitTerms& terms) { terms_ = terms; }

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override;

 private:
  /// The buffers that MPI accesses during a round.
  struct Round {
    MPI_Request request;
    std::vector<char> sent, envelopes, letters;
    std::vector<int> counts, begins;
  };
  absl::StatusOr<std::vector<std::string>> Gather(absl::string_view mine, Round& round);
  /// Sends each message's size and first bytes; returns the sizes.
  absl::StatusOr<std::vector<int64_t>> GatherEnvelopes(absl::string_view mine, Round& round);
  absl::Status GatherLetters(absl::string_view mine, const std::vector<int64_t>& sizes,
                             Round& round);
  absl::Status Await(Round& round);
  int AbsentHere();       // a rank of this node that has not arrived; -1: none
  int AbsentElsewhere();  // a rank of another node that has not noted a wait; -1: none

  MPI_Comm comm_;
  int rank_;
  int size_;
  WaitTerms terms_;
  std::optional<Board> board_;
  Members node_;
  Hearsay hearsay_;
  absl::Status first_error_;
};

}  // namespace coconet
