#include "runtime/host/thread_world.h"

#include <array>
#include <thread>

#include "coconet/base/status.h"
#include "runtime/host/cpu.h"
#include "runtime/host/host_rank.h"
#include "runtime/host/thread_communicator.h"
#include "runtime/host/thread_exchange.h"

namespace coconet {
namespace {

/// What the threads of one world share.
struct ThreadWorld {
  ThreadWorld(const Mesh& mesh, double timeout_s, std::shared_ptr<Region> board_memory)
      : mesh(mesh),
        cores(AllowedCores()),
        topology{.device = CpuName(),
                 .library = "thread",
                 .nodes = mesh.stages * mesh.nodes,
                 .ranks_per_node = mesh.ranks,
                 .cores = static_cast<int>(cores.size())},
        terms(TermsFor(mesh.size(), topology.cores, timeout_s)),
        timeout_s(timeout_s),
        board_memory(std::move(board_memory)),
        board(this->board_memory->base(), mesh.size()),
        mailboxes(std::make_shared<Mailboxes>(mesh.size())) {
    for (auto& of_lane : desks) {
      for (std::shared_ptr<Desks>& of : of_lane) of = std::make_shared<Desks>(mesh.size());
    }
  }

  Mesh mesh;
  std::vector<int> cores;
  Topology topology;
  WaitTerms terms;
  double timeout_s;
  std::shared_ptr<Region> board_memory;
  Board board;
  std::shared_ptr<Mailboxes> mailboxes;
  std::array<std::array<std::shared_ptr<Desks>, kGroups>, kLanes> desks;  // by lane and group
};

absl::Status RunRank(const ThreadWorld& world, int rank, bool pin, const std::function<absl::Status(Rank&)>& body) {
  if (pin) RunOn({world.cores[rank % world.cores.size()]});
  Board board = world.board;
  auto exchange = std::make_unique<ThreadExchange>(rank, world.mailboxes, board, world.terms);
  auto sharing = std::make_unique<ThreadSharing>(*exchange, SharingMemory(world.mesh, rank));
  std::array<Libraries, kLanes> libraries;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (Group group : kAllGroups) {
      const auto i = static_cast<size_t>(group);
      libraries[lane][i] =
          std::make_shared<ThreadCommunicator>(world.mesh, group, rank, world.desks[lane][i], board, world.terms);
    }
  }
  HostRank endpoint({.rank = rank,
                     .mesh = world.mesh,
                     .machine_rank = rank,
                     .machine_ranks = world.mesh.size(),
                     .topology = world.topology,
                     .cores = world.cores,
                     .pin = pin,
                     .timeout_s = world.timeout_s,
                     .exchange = std::move(exchange),
                     .libraries = std::move(libraries),
                     .sharing = std::move(sharing),
                     .board = board});
  const absl::Status status = body(endpoint);
  if (status.ok()) {
    board.Finish(rank);
  } else {
    board.Leave(rank, status);
  }
  return status;
}

/// The first error by rank; one that a rank had of its own goes before those that followed from a peer's.
absl::Status FirstError(const std::vector<absl::Status>& statuses) {
  absl::Status first;
  for (const absl::Status& status : statuses) {
    if (status.ok()) continue;
    if (!absl::IsAborted(status)) return status;
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace

absl::Status RunThreadWorld(int ranks, const WorldShape& shape, double timeout_s, bool pin,
                            const std::function<absl::Status(Rank&)>& body) {
  ASSIGN_OR_RETURN(const Mesh mesh, MeshOf(shape, std::vector<int>(ranks, 0)));
  ASSIGN_OR_RETURN(std::shared_ptr<Region> board_memory, Region::Map(Board::Bytes(ranks), -1));
  const ThreadWorld world(mesh, timeout_s, std::move(board_memory));
  std::vector<absl::Status> statuses(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { statuses[rank] = RunRank(world, rank, pin, body); });
  }
  for (std::thread& thread : threads) thread.join();
  return FirstError(statuses);
}

}  // namespace coconet
