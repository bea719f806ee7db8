#ifndef COCONET_RUNTIME_NODE_BOARD_H_
#define COCONET_RUNTIME_NODE_BOARD_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/node/wait.h"

namespace coconet {

/// Where the ranks of a node tell each other that they are gone, so that no wait for them runs to
/// its deadline. This object is a view of memory that all of them map; several views of the same
/// memory may be used at once.
class Board {
 public:
  static int64_t Bytes(int ranks);
  /// `memory`: Bytes(ranks), 64-byte aligned, zero-filled before the first view.
  Board(void* memory, int ranks);

  int ranks() const { return ranks_; }

  /// This view, which also calls `tell` when a rank leaves by it, or by a copy of it.
  Board Telling(std::function<void(const absl::Status&)> tell) const;

  /// A counter of each rank's own: how often it has come to something that all do together.
  std::atomic<unsigned>& arrivals(int rank);

  /// `rank` waits for `peer`, or, for -1, no more; said again and again, since one of its threads
  /// may say so of one peer while another waits for the next. Who has given up keeps its note:
  /// others, whose deadline is the same, may be looking for the one that all wait for.
  void NoteWait(int rank, int peer);
  int Awaited(int rank) const;  // what that was last; -1: nobody
  /// For whom `rank`, which waits for `peer`, waits in truth: `peer`, unless that waits for
  /// somebody, too, and so on; `peer` where that goes in a circle.
  int Suspect(int rank, int peer) const;

  /// `rank` gives up; the first reason a rank has is the one that stays.
  void Leave(int rank, const absl::Status& why);
  /// `rank` is done, with success.
  void Finish(int rank);

  /// True when a flag of `peer` that is not there by now will not come: it has finished, or some
  /// rank has left.
  bool InVain(int peer) const;
  /// True until `rank` leaves or finishes.
  bool IsHere(int rank) const;
  /// OK while nobody has left; else Aborted: "rank N left: <why>".
  absl::Status Left() const;
  /// The same, and also Aborted when `peer` has finished: why a wait for it is in vain.
  absl::Status Gone(int peer) const;

 private:
  struct Header;
  struct Notice;

  Header* header_;
  Notice* notices_;  // by rank
  int ranks_;
  std::function<void(const absl::Status&)> tell_;
};

/// OK while all ranks are here; else why `rank` cannot do `what`: "AllReduce on rank 1: rank 0
/// left: ...".
absl::Status CheckAllHere(const Board& board, int rank, absl::string_view what);

/// Waits until `peer` has set `flag` to `epoch`. On failure this rank leaves, with DeadlineExceeded
/// or Aborted; `what` names the operation: "AllReduce".
absl::Status AwaitPeer(Board& board, const WaitTerms& terms, int rank, int peer,
                       const std::atomic<unsigned>& flag, unsigned epoch, absl::string_view what);

/// "waited 60 s for rank 0"
std::string WaitedFor(int64_t timeout_ns, int peer);
/// After that: "; rank 0 may be dead or behind ...", of a suspect that the peer waits for, too: ";
/// rank 0 waits for rank 1; rank 1 may ...".
std::string MayBeDead(int peer, int suspect);
inline constexpr absl::string_view kDeadlineAdvice =
    "may be dead or behind; COCONET_TIMEOUT sets the deadline";

}  // namespace coconet

#endif  // COCONET_RUNTIME_NODE_BOARD_H_
