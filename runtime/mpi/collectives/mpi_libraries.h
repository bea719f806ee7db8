#ifndef COCONET_RUNTIME_MPI_COLLECTIVES_MPI_LIBRARIES_H_
#define COCONET_RUNTIME_MPI_COLLECTIVES_MPI_LIBRARIES_H_

#include <mpi.h>

#include <array>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/mesh.h"
#include "runtime/mpi/collectives/mpi_farewells.h"
#include "runtime/node/board.h"
#include "runtime/node/memory.h"
#include "runtime/node/rank_place.h"
#include "runtime/node/wait.h"

namespace coconet {

/// MPI's communicators of one world: each has one use, so that messages of two never meet.
struct MpiComms {
  MPI_Comm exchange = MPI_COMM_NULL;  // and farewells
  MPI_Comm traffic =
      MPI_COMM_NULL;  // point-to-point messages of all libraries, which have a tag each
};

/// Collective: those of all ranks.
absl::Status DuplicateWorld(MpiComms& comms);
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
  const std::vector<std::shared_ptr<Region>>&
      stages;  // StageBytes of each rank of the node, by world rank
  const Hearsay& hearsay;
};
/// What a rank shares with its node for that.
int64_t StageBytes(const Mesh& mesh);
/// By lane. A stage on one node is that node, and then nothing is across.
std::array<Libraries, kLanes> MakeLibraries(const LibrarySite& site);

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_COLLECTIVES_MPI_LIBRARIES_H_
