#pragma once

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

/// The MPI communicators of one world, one per use, so that messages of different uses never match.
struct MpiComms {
  MPI_Comm exchange = MPI_COMM_NULL;  // exchange and farewells
  /// Point-to-point messages of all libraries; each library has a tag.
  MPI_Comm traffic = MPI_COMM_NULL;
};

/// Collective. Duplicates MPI_COMM_WORLD into each member of `comms`.
absl::Status DuplicateWorld(MpiComms& comms);
/// Collective. Must not be called after a failure, because peers may be missing.
void Free(MpiComms& comms);

/// The ingredients of a rank's libraries.
struct LibrarySite {
  const MpiComms& comms;
  const Mesh& mesh;
  int rank;
  double timeout_s;
  WaitTerms terms;  // for peers on this node
  const Board& board;
  /// StagingBytes of each rank of the node, by world rank.
  const std::vector<std::shared_ptr<Region>>& staging;
  const Hearsay& hearsay;
};
/// Bytes that each rank shares with its node for the libraries' staging buffers.
int64_t StagingBytes(const Mesh& mesh);
/// The libraries by lane. If the pipeline stage has one node, kStage equals kNode and kAcross is a
/// single rank.
std::array<Libraries, kLanes> MakeLibraries(const LibrarySite& site);

}  // namespace coconet
