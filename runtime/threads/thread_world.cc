#include "runtime/threads/thread_world.h"

#include <array>
#include <thread>

#include "coconet/base/status.h"
#include "runtime/host/host_rank.h"
#include "runtime/node/cpu.h"
#include "runtime/threads/thread_communicator.h"
#include "runtime/threads/thread_exchange.h"

namespace coconet {
namespace {

/// The state that the threads of one world share.
struct ThreadWorld {
  ThreadWorld(const Mesh& mesh, double timeout_s, std::shared_ptr<Region> board_memory)
      : mesh(mesh),
        cores(AllowedCores()),
        terms(TermsFor(mesh.size(), static_cast<int>(cores.size()), timeout_s)),
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
  WaitTerms terms;
  double timeout_s;
  std::shared_ptr<Region> board_memory;
  Board board;
  std::shared_ptr<Mailboxes> mailboxes;
  std::array<std::array<std::shared_ptr<Desks>, kGroups>, kLanes> desks;  // by lane and group
};

RankPlace PlaceOf(const ThreadWorld& world, int rank, bool pin) {
  RankPlace place{
      .rank = rank,
      .mesh = world.mesh,
      .machine_rank = rank,
      .machine_ranks = world.mesh.size(),
      .cores = world.cores,
      .pin = pin,
      .timeout_s = world.timeout_s,
      .board = world.board,
      .exchange = std::make_unique<ThreadExchange>(rank, world.mailboxes, world.board, world.terms),
      .libraries = {},
      .library = "thread",
      .sharing = nullptr};
  place.sharing = std::make_unique<ThreadSharing>(*place.exchange, SharingMemory(world.mesh, rank));
  for (int lane = 0; lane < kLanes; ++lane) {
    for (Group group : kAllGroups) {
      const auto i = static_cast<size_t>(group);
      place.libraries[lane][i] = std::make_shared<ThreadCommunicator>(
          world.mesh, group, rank, world.desks[lane][i], world.board, world.terms);
    }
  }
  return place;
}

absl::Status RunRank(const ThreadWorld& world, int rank, bool pin, const MakeRank& make,
                     const RankBody& body) {
  if (pin) RunOn({world.cores[rank % world.cores.size()]});
  Board board = world.board;
  absl::StatusOr<std::unique_ptr<Rank>> endpoint = make(PlaceOf(world, rank, pin));
  const absl::Status status = endpoint.ok() ? body(**endpoint) : endpoint.status();
  if (status.ok()) {
    board.Finish(rank);
  } else {
    board.Leave(rank, status);
  }
  return status;
}

/// The first error by rank; errors that followed from a peer's (Aborted) rank last.
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

absl::Status RunThreadWorld(const WorldRequest& request, const RankBody& body) {
  return RunOnThreads(request, MakeHostRank, body);
}

absl::Status RunOnThreads(const WorldRequest& request, const MakeRank& make, const RankBody& body) {
  const int ranks = request.ranks;
  ASSIGN_OR_RETURN(const Mesh mesh, MeshOf(request.shape, std::vector<int>(ranks, 0)));
  ASSIGN_OR_RETURN(std::shared_ptr<Region> board_memory, Region::Map(Board::Bytes(ranks), -1));
  const ThreadWorld world(mesh, request.timeout_s, std::move(board_memory));
  std::vector<absl::Status> statuses(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&, rank] { statuses[rank] = RunRank(world, rank, request.pin, make, body); });
  }
  for (std::thread& thread : threads) thread.join();
  return FirstError(statuses);
}

}  // namespace coconet
