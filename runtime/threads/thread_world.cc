#include "runtime/threads/thread_world.h"

#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "coconet/base/status.h"
#include "runtime/control/called_exchange.h"
#include "runtime/host/host_rank.h"
#include "runtime/node/cpu.h"

namespace coconet {

ThreadWorld::ThreadWorld(const Mesh& mesh, std::vector<int> cores, double timeout_s,
                         std::shared_ptr<Region> board_memory)
    : mesh_(mesh),
      cores_(std::move(cores)),
      terms_(TermsFor(mesh.size(), static_cast<int>(cores_.size()), timeout_s)),
      timeout_s_(timeout_s),
      board_memory_(std::move(board_memory)),
      board_(board_memory_->base(), mesh.size()),
      mailboxes_(std::make_shared<Mailboxes>(mesh.size())) {
  for (auto& of_lane : desks_) {
    for (std::shared_ptr<Desks>& of : of_lane) of = std::make_shared<Desks>(mesh.size());
  }
}

absl::StatusOr<std::shared_ptr<const ThreadWorld>> ThreadWorld::Make(const Mesh& mesh,
                                                                     std::vector<int> cores,
                                                                     double timeout_s) {
  ASSIGN_OR_RETURN(std::shared_ptr<Region> board_memory,
                   Region::Map(Board::Bytes(mesh.size()), -1));
  return std::shared_ptr<const ThreadWorld>(
      new ThreadWorld(mesh, std::move(cores), timeout_s, std::move(board_memory)));
}

absl::StatusOr<std::shared_ptr<const ThreadWorld>> ThreadWorld::Meet(int64_t meeting,
                                                                     const Mesh& mesh,
                                                                     std::vector<int> cores,
                                                                     double timeout_s) {
  struct Met {
    absl::StatusOr<std::shared_ptr<const ThreadWorld>> world;
    int to_come;
  };
  static std::mutex mutex;
  static auto* meetings = new std::map<int64_t, Met>;
  const std::lock_guard<std::mutex> lock(mutex);
  auto found = meetings->find(meeting);
  if (found == meetings->end()) {
    found =
        meetings->emplace(meeting, Met{Make(mesh, std::move(cores), timeout_s), mesh.size()}).first;
  }
  absl::StatusOr<std::shared_ptr<const ThreadWorld>> world = found->second.world;
  if (--found->second.to_come == 0) meetings->erase(found);
  return world;
}

RankPlace ThreadWorld::PlaceOf(int rank, bool pin) const {
  RankPlace place{
      .rank = rank,
      .mesh = mesh_,
      .machine_rank = rank,
      .machine_ranks = mesh_.size(),
      .cores = cores_,
      .pin = pin,
      .timeout_s = timeout_s_,
      .board = board_,
      .exchange = std::make_unique<CalledExchange>(
          std::make_unique<ThreadExchange>(rank, mailboxes_, board_, terms_), rank, board_),
      .libraries = {},
      .library = "thread",
      .sharing = nullptr,
      .of_threads = true};
  place.sharing = std::make_unique<ThreadSharing>(*place.exchange, SharingMemory(mesh_, rank));
  for (int lane = 0; lane < kLanes; ++lane) {
    for (Group group : kAllGroups) {
      const auto i = static_cast<size_t>(group);
      place.libraries[lane][i] =
          std::make_shared<ThreadCommunicator>(mesh_, group, rank, desks_[lane][i], board_, terms_);
    }
  }
  return place;
}

namespace {

absl::Status RunRank(const ThreadWorld& world, int rank, bool pin, const MakeRank& make,
                     const RankBody& body) {
  if (pin) RunOn({world.cores()[rank % world.cores().size()]});
  Board board = world.board();
  absl::StatusOr<std::unique_ptr<Rank>> endpoint = make(world.PlaceOf(rank, pin));
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
  ASSIGN_OR_RETURN(const std::shared_ptr<const ThreadWorld> world,
                   ThreadWorld::Make(mesh, AllowedCores(), request.timeout_s));
  std::vector<absl::Status> statuses(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back(
        [&, rank] { statuses[rank] = RunRank(*world, rank, request.pin, make, body); });
  }
  for (std::thread& thread : threads) thread.join();
  return FirstError(statuses);
}

}  // namespace coconet
