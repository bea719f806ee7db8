#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/calls.h"
#include "runtime/mesh.h"
#include "runtime/node/wait.h"

namespace coconet {

class WireNotices;

/// Where the ranks of a node announce that they have finished or failed, so that no wait for them
/// runs to its deadline. A Board is a view of memory that all ranks map. Thread-safe, also across
/// views and processes.
class Board {
 public:
  static int64_t Bytes(int ranks);
  /// `memory`: Bytes(ranks), 64-byte aligned, zero-filled before the first view.
  Board(void* memory, int ranks);

  int ranks() const { return ranks_; }

  /// A copy of this view through which, and through whose copies, a rank also exchanges notices
  /// with ranks that do not map this board: when it leaves, and by the functions that say so.
  Board With(std::shared_ptr<WireNotices> notices) const;
  /// Puts on the board what such ranks have sent. Does not block.
  void ReceiveNotices() const;

  /// How many gathers of an exchange `rank` has reached; written by `rank`.
  std::atomic<unsigned>& arrivals(int rank) const;

  /// What `rank` calls; of a rank that does not map this board, as far as its notices say.
  CallLog& calls(int rank) const;
  /// Sends what `rank` calls to ranks that do not map this board.
  void ShowCalls(int rank) const;
  /// Whether `peer` has begun more calls than `rank`.
  bool IsAhead(int rank, int peer) const;
  /// Whether `rank` and `peer` call differently; `rank` then leaves with the difference.
  /// `is_behind_counts`: a peer that has begun a later call will not come to this one any more.
  bool Diverged(int rank, int peer, bool is_behind_counts);
  /// `rank`, which has met `peer` in another step of another plan, leaves; the reason.
  absl::Status Mismatched(int rank, int peer);
  /// "; rank 0 makes call 5, Read of m; rank 1 has come to call 4, Run of sgd"; "" where no calls
  /// are noted.
  std::string CallsOf(int rank, int peer) const;

  /// Notes that `rank` waits for `peer`; -1: for nobody. Waiters call it repeatedly, because two
  /// threads of a rank may wait for different peers. A waiter that gives up keeps its note: peers
  /// with the same deadline may still be looking for the suspect.
  void NoteWait(int rank, int peer);
  int Awaited(int rank) const;  // the peer last noted; -1: none
  /// The same as NoteWait, also for ranks that do not map this board.
  void ShowWait(int rank, int peer);
  /// The rank that blocks `rank`, which waits for `peer`: the end of the chain of waits that begins
  /// at `peer`; `peer` itself if the chain is a circle.
  int Suspect(int rank, int peer) const;

  /// `rank` leaves, having failed. Only its first reason is kept.
  void Leave(int rank, const absl::Status& why);
  /// `rank` has finished successfully.
  void Finish(int rank);

  /// True when a flag of `peer` that is not set yet will not be: `peer` has finished, or some rank
  /// has left.
  bool InVain(int peer) const;
  /// True until `rank` leaves or finishes.
  bool IsHere(int rank) const;
  /// OK while no rank has left; else Aborted: "rank N left: <why>", or that the ranks call
  /// differently (CallDifferently).
  absl::Status Left() const;
  /// The rank that left first; -1 while none has.
  int FirstLeft() const;
  /// As Left; also Aborted when `peer` has finished: the reason why a wait for it is in vain.
  absl::Status Gone(int peer) const;

 private:
  struct Header;
  struct Notice;

  Header* header_;
  Notice* notices_;  // by rank
  int ranks_;
  std::shared_ptr<WireNotices> wire_notices_;  // null: none
};

/// The error of ranks that make different calls, on all of them; DifferenceOf says which.
absl::Status CallDifferently(absl::string_view difference);
bool AreCallingDifferently(const absl::Status& left);

/// A wait for peers that lasts longer than a few polls: notes for whom, compares what the ranks
/// call, and says on stderr for whom it waits, after 10 s (or a quarter of the deadline, if that is
/// shorter) and then at intervals that double.
class LongWait {
 public:
  LongWait(Board& board, int rank, int64_t timeout_ns)
      : board_(&board), rank_(rank), timeout_ns_(timeout_ns) {}
  /// At each poll. Whether the wait for `peer` is in vain. `is_behind_counts`: as of
  /// Board::Diverged.
  bool InVain(int peer, bool is_behind_counts = false);
  /// The same for a wait that ends when all ranks have come, of which `awaited` has not (-1: not
  /// known), by a thread that may send messages. `mapped`: the ranks that read the board.
  bool InVainForAll(const Members& mapped, int awaited);

 private:
  void Tell(int peer, bool shows);
  /// Whether a peer has been ahead for so long that what it left for this wait would have been
  /// seen: a peer that has come may begin its next call before this rank looks again.
  bool StaysAhead(int peer);

  Board* board_;
  int rank_;
  int64_t timeout_ns_;
  int64_t start_ns_ = 0, line_ns_ = 0;  // when the first poll was; how long until the next line
  int64_t ahead_ns_ = 0;                // when a peer was first seen ahead
  unsigned polls_ = 0;
  bool shown_ = false;  // the own calls, to other nodes
};

/// OK while no rank has left; else the error of `what` on `rank`: "AllReduce on rank 1: rank
/// 0 left: ...".
absl::Status CheckAllHere(const Board& board, int rank, absl::string_view what);

/// Waits until `peer` has set `flag` to `epoch`. On failure this rank leaves with DeadlineExceeded
/// or Aborted. `what` names the operation in the error: "AllReduce". `is_behind_counts`: as of
/// Board::Diverged.
absl::Status AwaitPeer(Board& board, const WaitTerms& terms, int rank, int peer,
                       const std::atomic<unsigned>& flag, unsigned epoch, absl::string_view what,
                       bool is_behind_counts = false);

/// The error of a connection that has broken: why a rank has left, if a notice says so within half
/// a second, since the connection of a rank that leaves may break before its notice is read; else
/// `broken`.
absl::Status WhyBroken(const Board& board, const absl::Status& broken);

/// "waited 60 s for rank 0"
std::string WaitedFor(int64_t timeout_ns, int peer);
/// Continues WaitedFor: "; rank 0 may be dead or behind ...", or, if `peer` itself waits for
/// another suspect: "; rank 0 waits for rank 1; rank 1 may be ...".
std::string MayBeDead(int peer, int suspect);
inline constexpr absl::string_view kDeadlineAdvice =
    "may be dead or behind; COCONET_TIMEOUT sets the deadline";

}  // namespace coconet
