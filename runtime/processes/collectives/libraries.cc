#include "runtime/processes/collectives/libraries.h"

#include <algorithm>
#include <utility>

#include "runtime/processes/collectives/node_communicator.h"
#include "runtime/processes/collectives/spanning_communicator.h"

namespace coconet {
namespace {

std::unique_ptr<PeerTraffic> TrafficOf(const LibrarySite& site, int lane, Group group) {
  const int most = std::max(1, GroupOf(site.mesh, group, site.rank).size - 1);
  return site.transport.MakeTraffic(lane, group, most);
}

std::shared_ptr<Communicator> NodeLibrary(const LibrarySite& site, int lane, Group group) {
  const Members members = GroupOf(site.mesh, group, site.rank);
  std::unique_ptr<StagingBuffer> staging;
  if (members.size > 1) {
    staging = std::make_unique<StagingBuffer>(
        site.regions, site.offset + lane * StagingBuffer::kBytes, StagingBuffer::kBytes, members,
        site.rank, site.board, site.terms);
  }
  return std::make_shared<NodeCommunicator>(members, std::move(staging),
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
    of(group) = std::make_shared<SpanningCommunicator>(site.mesh, group, site.rank,
                                                       TrafficOf(site, lane, group));
  }
  return libraries;
}

}  // namespace

int64_t StagingBytes(const Mesh& mesh) {
  return mesh.ranks > 1 ? kLanes * StagingBuffer::kBytes : 0;
}

std::array<Libraries, kLanes> MakeLibraries(const LibrarySite& site) {
  std::array<Libraries, kLanes> libraries;
  for (int lane = 0; lane < kLanes; ++lane) libraries[lane] = LibrariesOf(site, lane);
  return libraries;
}

}  // namespace coconet
