#ifndef COCONET_RUNTIME_MPI_MPI_LIBRARIES_H_
#define COCONET_RUNTIME_MPI_MPI_LIBRARIES_H_

#include <mpi.h>

#include <array>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/host/board.h"
#include "runtime/host/host_rank.h"
#include "runtime/host/wait.h"
#include "runtime/mesh.h"

namespace coconet {

/// MPI's communicators of one world: each has one use, so that messages of two never meet.
struct MpiComms {
  MPI_Comm exchange = MPI_COMM_NULL;  // and farewells
  MPI_Comm traffic = MPI_COMM_NULL;   // point-to-point messages of all libraries, which have a tag each
  std::array<MPI_Comm, kLanes> nodes = {MPI_COMM_NULL, MPI_COMM_NULL};  // by lane: of the ranks on this rank's node
};

/// Collective: those of all ranks.
absl::Status DuplicateWorld(MpiComms& comms);
/// Collective, after that: those of this rank's node.
absl::Status SplitByNode(const Mesh& mesh, int rank, MpiComms& comms);
/// Collective; not after a failure, when the peers may not come.
void Free(MpiComms& comms);

/// What the libraries of a rank are made of.
struct LibrarySite {
  const MpiComms& comms;
  const Mesh& mesh;
  int rank;
  double timeout_s;
  WaitTerms terms;  // for ranks of this node
  const Board& board;
  std::function<void()> listen;  // puts on the board what is heard from other nodes
};
/// By lane. A stage on one node is that node, and then nothing is across.
absl::StatusOr<std::array<Libraries, kLanes>> MakeLibraries(const LibrarySite& site);

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_MPI_LIBRARIES_H_
