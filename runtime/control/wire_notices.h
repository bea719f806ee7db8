#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/calls.h"
#include "runtime/control/board.h"
#include "runtime/control/wire.h"
#include "runtime/mesh.h"

namespace coconet {

/// Abort notices between ranks of different nodes, which share no board; also what they call and,
/// in long waits, whom they wait for. As thread-safe as the wire.
class WireNotices {
 public:
  /// `node`: the ranks that read `board`. `tag` has no other user.
  static absl::StatusOr<std::shared_ptr<WireNotices>> Begin(std::shared_ptr<Wire> wire, int tag,
                                                            int rank, const Board& board,
                                                            const Members& node);

  /// Tells all ranks of other nodes that this rank leaves; tries to for up to a second. They have a
  /// deadline, too.
  void Abort(const absl::Status& why);
  /// Tells them that this rank has waited long for `peer`; -1: that it no longer waits. Does not
  /// block.
  void ShowWait(int peer);
  /// Tells them what this rank calls. Does not block.
  void ShowCalls(const CallLog& mine);
  /// Puts on the board what has been received from other nodes. Does not block.
  void Receive();
  /// Ends the receives. None of the other functions may be called any more.
  void Close();

 private:
  /// A notice of a size that is the same for all, so that a receive for one is always there.
  struct Notice;
  struct Inbox;

  WireNotices(std::shared_ptr<Wire> wire, int tag, const Board& board)
      : wire_(std::move(wire)), tag_(tag), board_(board) {}
  void Send(char kind, absl::string_view text);
  void DropSent();
  absl::Status Await(Inbox& inbox);
  void Take(int sender, Notice& notice);

  std::shared_ptr<Wire> wire_;
  int tag_;
  Board board_;
  std::mutex mutex_;
  std::vector<Inbox*> inboxes_;  // leaked, as the wire may write to them until it is closed
  std::vector<Notice*> sent_;    // not yet, as far as is known; leaked likewise
};

}  // namespace coconet
