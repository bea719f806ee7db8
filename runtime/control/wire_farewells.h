#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/control/board.h"
#include "runtime/control/wire.h"
#include "runtime/mesh.h"

namespace coconet {

/// How ranks of different nodes, which share no board, tell each other that they leave and, in long
/// waits, whom they wait for. Thread-safe.
class WireFarewells {
 public:
  /// `node`: the ranks that read this rank's board. `tag` has no other user.
  static absl::StatusOr<std::shared_ptr<WireFarewells>> Begin(std::shared_ptr<Wire> wire, int tag,
                                                              int rank, int size,
                                                              const Members& node);

  /// Tells all ranks of other nodes that this rank leaves; tries to for up to a second. They have a
  /// deadline, too.
  void Tell(const absl::Status& why);
  /// Tells them that this rank has waited long for `peer`; -1: that it no longer waits. Does not
  /// block.
  void Note(int peer);
  /// Tells them what this rank calls. Does not block.
  void Show(const CallLog& mine);
  /// Puts on `board` what has been received from other nodes.
  void Listen(Board& board);

 private:
  /// A letter of a size that is the same for all, so that a receive for one is always there.
  struct Letter;
  struct Mailbox;

  WireFarewells(std::shared_ptr<Wire> wire, int tag) : wire_(std::move(wire)), tag_(tag) {}
  void Post(char kind, absl::string_view text);
  void DropSent();

  std::shared_ptr<Wire> wire_;
  int tag_;
  std::mutex mutex_;
  std::vector<Mailbox*> mailboxes_;  // leaked, as the wire may write to them until it is closed
  std::vector<Letter*> sent_;        // not yet, as far as is known; likewise
};

}  // namespace coconet
