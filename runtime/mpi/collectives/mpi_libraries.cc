#include "runtime/mpi/collectives/mpi_libraries.h"

#include <algorithm>
#include <utility>

#include "coconet/base/status.h"
#include "runtime/mpi/collectives/mpi_node_communicator.h"
#include "runtime/mpi/collectives/mpi_spanning_communicator.h"
#include "runtime/mpi/collectives/mpi_status.h"

namespace coconet {
namespace {

absl::Status Duplicate(MPI_Comm comm, MPI_Comm& copy) {
  RETURN_IF_MPI(Comm_dup, comm, &copy);
  RETURN_IF_MPI(Comm_set_errhandler, copy, MPI_ERRORS_RETURN);
  return absl::OkStatus();
}

std::unique_ptr<MpiTraffic> TrafficOf(const LibrarySite& site, int lane, Group group) {
  const int tag = lane * kGroups + static_cast<int>(group);
  const int most = std::max(1, GroupOf(site.mesh, group, site.rank).size - 1);
  return std::make_unique<MpiTraffic>(site.comms.traffic, tag, site.rank, most, site.timeout_s,
                                      site.board, site.hearsay);
}

std::shared_ptr<Communicator> NodeLibrary(const LibrarySite& site, int lane, Group group) {
  const Members members = GroupOf(site.mesh, group, site.rank);
  std::unique_ptr<StagingBuffer> staging;
  if (members.size > 1) {
    staging = std::make_unique<StagingBuffer>(site.staging, lane * StagingBuffer::kBytes, members,
                                              site.rank, site.board, site.terms);
  }
  return std::make_shared<MpiNodeCommunicator>(members, std::move(staging),
                                               TrafficOf(site, lane, group), site.rank,
                                               Column(site.mesh, site.rank));
}

Libraries LibrariesOf(const LibrarySite& site, int lane) {
  Libraries libraries;
  const auto of = [&](Group group) -> std::shared_ptr<Communicator>& {
    return libraries[static_cast<size_t>(group)];
  };
  of(Group::kNode) = NodeLibrary(site, lane, Group::kNode);
  if (site.mesh.nodes == 1) {
    of(Group::kStage) = of(Group::kNode);
    of(Group::kAcross) = NodeLibrary(site, lane, Group::kAcross);
    return libraries;
  }
  for (Group group : {Group::kStage, Group::kAcross}) {
    of(group) = std::make_shared<MpiSpanningCommunicator>(site.mesh, group, site.rank,
                                                          TrafficOf(site, lane, group));
  }
  return libraries;
}

}  // namespace

absl::Status DuplicateWorld(MpiComms& comms) {
  RETURN_IF_ERROR(Duplicate(MPI_COMM_WORLD, comms.exchange));
  return Duplicate(MPI_COMM_WORLD, comms.traffic);
}

void Free(MpiComms& comms) {
  MPI_Comm_free(&comms.traffic);
  MPI_Comm_free(&comms.exchange);
}

int64_t StagingBytes(const Mesh& mesh) {
  return mesh.ranks > 1 ? kLanes * StagingBuffer::kBytes : 0;
}

std::array<Libraries, kLanes> MakeLibraries(const LibrarySite& site) {
  std::array<Libraries, kLanes> libraries;
  for (int lane = 0; lane < kLanes; ++lane) libraries[lane] = LibrariesOf(site, lane);
  return libraries;
}

}  // namespace coconet
