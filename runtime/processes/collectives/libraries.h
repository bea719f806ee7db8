#pragma once

#include <array>
#include <memory>
#include <vector>

#include "runtime/control/board.h"
#include "runtime/control/rank_place.h"
#include "runtime/mesh.h"
#include "runtime/node/memory.h"
#include "runtime/node/wait.h"
#include "runtime/processes/transport.h"

namespace coconet {

/// The ingredients of a rank's libraries.
struct LibrarySite {
  Transport& transport;
  const Mesh& mesh;
  int rank;
  WaitTerms terms;  // for peers on this machine
  const Board& board;
  /// The memory of each rank of the node, by world rank; StagingBytes of it are for staging, from
  /// `offset`.
  const std::vector<std::shared_ptr<Region>>& regions;
  int64_t offset;
};
/// Bytes that each rank shares with its node for the libraries' staging buffers.
int64_t StagingBytes(const Mesh& mesh);
/// The libraries by lane. If the pipeline stage has one node, kStage equals kNode and kAcross is a
/// single rank.
std::array<Libraries, kLanes> MakeLibraries(const LibrarySite& site);

}  // namespace coconet
