#include "runtime/mpi/mpi_libraries.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "coconet/base/status.h"
#include "runtime/mpi/mpi_communicator.h"
#include "runtime/mpi/mpi_spanning_communicator.h"
#include "runtime/mpi/mpi_status.h"

namespace coconet {
namespace {

constexpr int64_t kElementsACall = int64_t{1} << 30;  // MPI counts with ints

absl::Status Duplicate(MPI_Comm comm, MPI_Comm& copy) {
  RETURN_IF_MPI(Comm_dup, comm, &copy);
  RETURN_IF_MPI(Comm_set_errhandler, copy, MPI_ERRORS_RETURN);
  return absl::OkStatus();
}

/// The gate of a lane's library between processes of one machine.
class Gate {
 public:
  Gate(const LibrarySite& site, int lane, const Members& group)
      : board_(site.board), group_(group), rank_(site.rank), lane_(lane), terms_(site.terms) {}

  absl::Status operator()(absl::string_view what) {
    RETURN_IF_ERROR(CheckAllHere(board_, rank_, what));
    board_.arrivals(rank_, lane_).store(++calls_, std::memory_order_release);
    for (int i = 0; i < group_.size; ++i) {
      const int peer = group_.Rank(i);
      RETURN_IF_ERROR(AwaitPeer(board_, terms_, rank_, peer, board_.arrivals(peer, lane_), calls_, what));
    }
    return absl::OkStatus();
  }

 private:
  Board board_;
  Members group_;
  int rank_, lane_;
  WaitTerms terms_;
  unsigned calls_ = 0;
};

std::unique_ptr<MpiTraffic> TrafficOf(const LibrarySite& site, int lane, Group group) {
  const int tag = lane * kGroups + static_cast<int>(group);
  const int most = std::max(1, GroupOf(site.mesh, group, site.rank).size - 1);
  return std::make_unique<MpiTraffic>(site.comms.traffic, tag, site.rank, most, site.timeout_s, site.board, site.listen);
}

/// MPI's own collectives, for a group whose ranks are on one machine.
absl::StatusOr<std::shared_ptr<Communicator>> NodeLibrary(const LibrarySite& site, int lane, Group group) {
  ASSIGN_OR_RETURN(std::unique_ptr<MpiOps> ops, MpiOps::Create());
  const Members members = GroupOf(site.mesh, group, site.rank);
  return std::make_shared<MpiCommunicator>(site.comms.nodes[lane], members, std::move(ops), Gate(site, lane, members),
                                           kElementsACall, TrafficOf(site, lane, group), site.rank,
                                           Column(site.mesh, site.rank));
}

absl::StatusOr<Libraries> LibrariesOf(const LibrarySite& site, int lane) {
  Libraries libraries;
  const auto of = [&](Group group) -> std::shared_ptr<Communicator>& { return libraries[static_cast<size_t>(group)]; };
  ASSIGN_OR_RETURN(of(Group::kNode), NodeLibrary(site, lane, Group::kNode));
  if (site.mesh.nodes == 1) {
    of(Group::kStage) = of(Group::kNode);
    ASSIGN_OR_RETURN(of(Group::kAcross), NodeLibrary(site, lane, Group::kAcross));
    return libraries;
  }
  for (Group group : {Group::kStage, Group::kAcross}) {
    of(group) = std::make_shared<MpiSpanningCommunicator>(site.mesh, group, site.rank, TrafficOf(site, lane, group));
  }
  return libraries;
}

}  // namespace

absl::Status DuplicateWorld(MpiComms& comms) {
  RETURN_IF_ERROR(Duplicate(MPI_COMM_WORLD, comms.exchange));
  return Duplicate(MPI_COMM_WORLD, comms.traffic);
}

absl::Status SplitByNode(const Mesh& mesh, int rank, MpiComms& comms) {
  for (MPI_Comm& node : comms.nodes) {
    RETURN_IF_MPI(Comm_split, comms.traffic, rank / mesh.ranks, rank, &node);
    RETURN_IF_MPI(Comm_set_errhandler, node, MPI_ERRORS_RETURN);
  }
  return absl::OkStatus();
}

void Free(MpiComms& comms) {
  for (MPI_Comm& node : comms.nodes) MPI_Comm_free(&node);
  MPI_Comm_free(&comms.traffic);
  MPI_Comm_free(&comms.exchange);
}

absl::StatusOr<std::array<Libraries, kLanes>> MakeLibraries(const LibrarySite& site) {
  std::array<Libraries, kLanes> libraries;
  for (int lane = 0; lane < kLanes; ++lane) {
    ASSIGN_OR_RETURN(libraries[lane], LibrariesOf(site, lane));
  }
  return libraries;
}

}  // namespace coconet
