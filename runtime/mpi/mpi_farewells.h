#ifndef COCONET_RUNTIME_MPI_MPI_FAREWELLS_H_
#define COCONET_RUNTIME_MPI_MPI_FAREWELLS_H_

#include <mpi.h>

#include "absl/status/status.h"
#include "runtime/host/board.h"
#include "runtime/mesh.h"

namespace coconet {

/// How ranks of different nodes, which share no board, tell each other that they give up. May be used by several threads
/// where MPI may.
class MpiFarewells {
 public:
  /// `node`: the ranks that read this rank's board. Uses point-to-point messages of `comm`, which nobody else does.
  MpiFarewells(MPI_Comm comm, int rank, int size, const Members& node)
      : comm_(comm), rank_(rank), size_(size), node_(node) {}

  /// Tells all ranks of other nodes. Does not wait; best effort, since they also have a deadline.
  void Tell(const absl::Status& why) const;

  /// Puts on `board` what has come from other nodes.
  void Listen(Board& board) const;

 private:
  MPI_Comm comm_;
  int rank_;
  int size_;
  Members node_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_MPI_FAREWELLS_H_
