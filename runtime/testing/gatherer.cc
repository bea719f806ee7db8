#include "runtime/testing/gatherer.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "coconet/base/status.h"

namespace coconet {

std::shared_ptr<Region> Gatherer::TableMemory() {
  const int file = memfd_create("table", MFD_CLOEXEC);
  CC_CHECK(file >= 0 && ftruncate(file, Region::Rounded(sizeof(Table))) == 0);
  absl::StatusOr<std::shared_ptr<Region>> region = Region::Map(sizeof(Table), file);
  close(file);
  CC_CHECK(region.ok());
  return *region;
}

Gatherer::Gatherer(const std::shared_ptr<Region>& table, int rank, int ranks)
    : memory_(table), table_(*static_cast<Table*>(table->base())), rank_(rank), ranks_(ranks) {}

OutOfBand Gatherer::way() {
  return {.rank = rank_,
          .ranks = ranks_,
          .context = this,
          .all_gather =
              [](void* context, const void* mine, void* all, size_t bytes, void** request) {
                return static_cast<Gatherer*>(context)->Begin(mine, all, bytes, request);
              },
          .test = [](void* context,
                     void* request) { return static_cast<Gatherer*>(context)->Test(request); },
          .release = [](void* context,
                        void* /*request*/) { ++static_cast<Gatherer*>(context)->released; },
          .absent = [](void* context,
                       void* /*request*/) { return static_cast<Gatherer*>(context)->Absent(); },
          .error = [](void* /*context*/) { return "the socket is closed"; }};
}

int Gatherer::Begin(const void* mine, void* all, size_t bytes, void** request) {
  if (begun++ == fails_at) return 1;
  CC_CHECK(bytes <= kMostBytes);
  const unsigned round = table_.rows[rank_].rounds.load() + 1;
  std::memcpy(table_.rows[rank_].bytes[round % 2], mine, bytes);
  table_.rows[rank_].rounds.store(round);
  all_ = static_cast<char*>(all);
  bytes_ = bytes;
  *request = this;
  return 0;
}

int Gatherer::Test(void* request) {
  CC_CHECK(request == this);
  if (Absent() >= 0) return 1;
  const unsigned round = table_.rows[rank_].rounds.load();
  for (int peer = 0; peer < ranks_; ++peer) {
    const int from = swaps ? ranks_ - 1 - peer : peer;
    std::memcpy(all_ + peer * bytes_, table_.rows[from].bytes[round % 2], bytes_);
  }
  return 0;
}

int Gatherer::Absent() const {
  const unsigned round = table_.rows[rank_].rounds.load();
  for (int peer = 0; peer < ranks_; ++peer) {
    if (static_cast<int>(table_.rows[peer].rounds.load() - round) < 0) return peer;
  }
  return -1;
}

std::vector<absl::Status> GatherOnThreads(int ranks, const GathererBody& body,
                                          const std::shared_ptr<Region>& table) {
  std::vector<absl::Status> statuses(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Gatherer gatherer(table, rank, ranks);
      statuses[rank] = body(gatherer, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

std::vector<std::string> GatherOnProcesses(int ranks, const GathererBody& body) {
  const std::shared_ptr<Region> memory = Gatherer::TableMemory(), words = Gatherer::TableMemory();
  auto& said = *static_cast<Gatherer::Table*>(words->base());
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    Gatherer gatherer(memory, rank, ranks);
    const std::string text = body(gatherer, rank).ToString();
    std::strncpy(said.rows[rank].bytes[0], text.c_str(), Gatherer::kMostBytes - 1);
    _exit(0);
  }
  std::vector<std::string> statuses;
  for (int rank = 0; rank < ranks; ++rank) {
    int status = 0;
    CC_CHECK(waitpid(children[rank], &status, 0) == children[rank]);
    statuses.push_back(WIFEXITED(status) ? said.rows[rank].bytes[0] : "killed");
  }
  return statuses;
}

}  // namespace coconet
