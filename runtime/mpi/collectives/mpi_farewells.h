#ifndef COCONET_RUNTIME_MPI_COLLECTIVES_MPI_FAREWELLS_H_
#define COCONET_RUNTIME_MPI_COLLECTIVES_MPI_FAREWELLS_H_

#include <mpi.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "runtime/mesh.h"
#include "runtime/node/board.h"

namespace coconet {

/// What a rank hears from other nodes and tells them.
struct Hearsay {
  std::function<void()> listen = [] {};  // puts on the board what has come
  std::function<void(int peer)> note = [](int /*peer*/) {
  };  // as Board::NoteWait of this rank, for those of other nodes
};

/// How ranks of different nodes, which share no board, tell each other that they give up, and, when
/// a wait takes long, whom they wait for. May be used by several threads where MPI may.
class MpiFarewells {
 public:
  /// `node`: the ranks that read this rank's board. Uses point-to-point messages of `comm`, which
  /// nobody else does.
  MpiFarewells(MPI_Comm comm, int rank, int size, const Members& node)
      : comm_(comm), rank_(rank), size_(size), node_(node) {}

  /// Tells all ranks of other nodes. Does not wait; best effort, since they also have a deadline.
  void Tell(const absl::Status& why) const;

  /// Tells them that this rank has waited long for `peer`, or, for -1, does not wait any more. Best
  /// effort, too.
  void Note(int peer) const;

  /// Puts on `board` what has come from other nodes.
  void Listen(Board& board) const;

 private:
  void Post(std::string letter) const;

  MPI_Comm comm_;
  int rank_;
  int size_;
  Members node_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_COLLECTIVES_MPI_FAREWELLS_H_
