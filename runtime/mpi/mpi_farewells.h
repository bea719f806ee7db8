#pragma once

#include <mpi.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "runtime/control/board.h"
#include "runtime/mesh.h"

namespace coconet {

/// How ranks of different nodes, which share no board, tell each other that they leave and, in long
/// waits, whom they wait for. As thread-safe as MPI was initialised.
class MpiFarewells {
 public:
  /// `node`: the ranks that read this rank's board. Sends point-to-point messages in `comm`, which
  /// must have no other point-to-point user.
  MpiFarewells(MPI_Comm comm, int rank, int size, const Members& node)
      : comm_(comm), rank_(rank), size_(size), node_(node) {}

  /// Tells all ranks of other nodes that this rank leaves. Does not block. Best effort: they have a
  /// deadline, too.
  void Tell(const absl::Status& why) const;

  /// Tells them that this rank has waited long for `peer`; -1: that it no longer waits. Does not
  /// block. Best effort.
  void Note(int peer) const;

  /// Tells them what this rank calls. Does not block. Best effort.
  void Show(const CallLog& mine) const { Post(absl::StrCat("c", mine.Print())); }

  /// Puts on `board` what has been received from other nodes.
  void Listen(Board& board) const;

 private:
  void Post(std::string letter) const;

  MPI_Comm comm_;
  int rank_;
  int size_;
  Members node_;
};

}  // namespace coconet
