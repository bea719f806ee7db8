#include "runtime/processes/out_of_band.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/join.h"
#include "runtime/node/memory.h"
#include "runtime/testing/all_reduce_checks.h"
#include "runtime/testing/all_to_all_checks.h"
#include "runtime/testing/checks.h"
#include "runtime/testing/lane_checks.h"
#include "runtime/testing/send_checks.h"

namespace coconet {
namespace {

using testing::HasSubstr;

constexpr int kMostRanks = 8;
constexpr size_t kMostBytes = 1 << 16;

/// An all-gather through memory that threads and forked processes share.
struct Table {
  struct Row {
    std::atomic<unsigned> rounds;
    char bytes[2][kMostBytes];  // of odd and even rounds
  };
  Row rows[kMostRanks];
};

class Gatherer {
 public:
  Gatherer(Table& table, int rank, int ranks) : table_(table), rank_(rank), ranks_(ranks) {}

  OutOfBand way() {
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
  int fails_at = -1;  // number of the all-gather
  bool swaps = false;
  int begun = 0, released = 0;

 private:
  int Begin(const void* mine, void* all, size_t bytes, void** request) {
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
  int Test(void* request) {
    CC_CHECK(request == this);
    if (Absent() >= 0) return 1;
    const unsigned round = table_.rows[rank_].rounds.load();
    for (int peer = 0; peer < ranks_; ++peer) {
      const int from = swaps ? ranks_ - 1 - peer : peer;
      std::memcpy(all_ + peer * bytes_, table_.rows[from].bytes[round % 2], bytes_);
    }
    return 0;
  }
  int Absent() {
    const unsigned round = table_.rows[rank_].rounds.load();
    for (int peer = 0; peer < ranks_; ++peer) {
      if (static_cast<int>(table_.rows[peer].rounds.load() - round) < 0) return peer;
    }
    return -1;
  }

  Table& table_;
  int rank_, ranks_;
  char* all_ = nullptr;
  size_t bytes_ = 0;
};

std::shared_ptr<Region> TableMemory() {
  // Shared between forked processes: anonymous memory of Region is private.
  static_assert(sizeof(Table) < (int64_t{4} << 20));
  const int file = memfd_create("table", MFD_CLOEXEC);
  CC_CHECK(file >= 0 && ftruncate(file, Region::Rounded(sizeof(Table))) == 0);
  absl::StatusOr<std::shared_ptr<Region>> region = Region::Map(sizeof(Table), file);
  close(file);
  CC_CHECK(region.ok());
  return *region;
}

absl::Status JoinAndRun(Gatherer& gatherer, WorldOptions world, const RankBody& body) {
  ASSIGN_OR_RETURN(std::unique_ptr<Membership> member,
                   Join({.world = world, .out_of_band = gatherer.way()}));
  absl::Status status = body(member->rank());
  if (!status.ok()) member->Leave(status);
  EXPECT_EQ(gatherer.begun, gatherer.released);
  return status;
}

/// Joins `ranks` threads, each of which runs `body`; by rank.
std::vector<absl::Status> OnThreads(int ranks, const WorldOptions& world, const RankBody& body) {
  const std::shared_ptr<Region> memory = TableMemory();
  auto& table = *static_cast<Table*>(memory->base());
  std::vector<absl::Status> statuses(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Gatherer gatherer(table, rank, ranks);
      statuses[rank] = JoinAndRun(gatherer, world, body);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

/// The same with forked processes; statuses as text.
std::vector<std::string> OnProcesses(int ranks, const WorldOptions& world, const RankBody& body) {
  const std::shared_ptr<Region> memory = TableMemory(), words = TableMemory();
  auto& table = *static_cast<Table*>(memory->base());
  auto& said = *static_cast<Table*>(words->base());
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    Gatherer gatherer(table, rank, ranks);
    const std::string text = JoinAndRun(gatherer, world, body).ToString();
    std::strncpy(said.rows[rank].bytes[0], text.c_str(), kMostBytes - 1);
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

using Check = absl::Status (*)(Rank&);
struct Case {
  const char* name;
  Check check;
  int ranks;
  WorldShape shape = {};
};

const std::pair<const char*, Check> kChecks[] = {
    {"Exchange", CheckExchange},
    {"Collectives", CheckCollectives},
    {"LargeCollectives", CheckLargeCollectives},
    {"CollectiveSteps", CheckCollectiveSteps},
    {"AllToAlls", CheckAllToAlls},
    {"AllReduces", CheckAllReduces},
    {"Memory", CheckMemory},
    {"Plans", CheckPlans},
    {"SendsInKernels", CheckSendsInKernels},
    {"OrderOfLanes", CheckOrderOfLanes},
    {"CollectivesOnBothLanes", CheckCollectivesOnBothLanes}};

std::vector<Case> Cases() {
  const std::pair<int, WorldShape> worlds[] = {{1, {}},
                                               {2, {}},
                                               {3, {}},
                                               {4, {.stages = 1, .nodes = 2}},
                                               {6, {.stages = 3, .nodes = 0}},
                                               {8, {.stages = 2, .nodes = 4}}};
  std::vector<Case> cases;
  for (const auto& [ranks, shape] : worlds) {
    for (const auto& [name, check] : kChecks) cases.push_back({name, check, ranks, shape});
  }
  return cases;
}

class JoinedWorld : public testing::TestWithParam<Case> {};

TEST_P(JoinedWorld, OfThreadsDoes) {
  const Case& c = GetParam();
  const WorldOptions world{.stages = c.shape.stages, .nodes = c.shape.nodes, .pin = false};
  for (const absl::Status& status : OnThreads(c.ranks, world, c.check))
    EXPECT_EQ(status, absl::OkStatus());
}

INSTANTIATE_TEST_SUITE_P(All, JoinedWorld, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<Case>& info) {
                           return absl::StrCat(info.param.name, "_", info.param.ranks, "x",
                                               info.param.shape.stages, "x",
                                               info.param.shape.nodes);
                         });

TEST(Processes, JoinOutOfBand) {
  for (const auto& [name, check] : kChecks) {
    for (const std::string& status : OnProcesses(3, {.pin = false}, check))
      EXPECT_EQ(status, "OK") << name;
  }
}

TEST(Processes, JoinAgainAfterLeaving) {
  const auto body = [](Rank& rank) { return rank.exchange().Barrier(); };
  const std::shared_ptr<Region> memory = TableMemory();
  auto& table = *static_cast<Table*>(memory->base());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Gatherer gatherer(table, rank, 2);
      for (int time = 0; time < 3; ++time)
        EXPECT_EQ(JoinAndRun(gatherer, {.pin = false}, body), absl::OkStatus());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A rank in two worlds at once, whose ranks have other numbers in each.
TEST(Processes, JoinTwoWorldsAtOnce) {
  const std::shared_ptr<Region> first = TableMemory(), second = TableMemory();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Gatherer one(*static_cast<Table*>(first->base()), rank, 2);
      Gatherer other(*static_cast<Table*>(second->base()), 1 - rank, 2);
      const absl::StatusOr<std::unique_ptr<Membership>> a = Join({.out_of_band = one.way()});
      const absl::StatusOr<std::unique_ptr<Membership>> b = Join({.out_of_band = other.way()});
      ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
      EXPECT_EQ((*a)->rank().exchange().Broadcast(absl::StrCat(rank)).value(), "0");
      EXPECT_EQ((*b)->rank().exchange().Broadcast(absl::StrCat(rank)).value(), "1");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Join, NamesTheRankThatNeverComes) {
  const std::shared_ptr<Region> memory = TableMemory();
  Gatherer gatherer(*static_cast<Table*>(memory->base()), 0, 2);
  const absl::Status status =
      Join({.world = {.timeout_s = 0.1, .pin = false}, .out_of_band = gatherer.way()}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("waited 0.1 s for rank 1"));
}

TEST(Join, PassesOnTheCallersWords) {
  const std::shared_ptr<Region> memory = TableMemory();
  Gatherer gatherer(*static_cast<Table*>(memory->base()), 0, 1);
  gatherer.fails_at = 1;
  const absl::Status status = Join({.out_of_band = gatherer.way()}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the socket is closed"));
}

TEST(Join, RefusesWhatMakesNoSense) {
  const auto join = [](const OutOfBand& way) { return Join({.out_of_band = way}).status(); };
  EXPECT_TRUE(absl::IsInvalidArgument(join({.rank = 2, .ranks = 2})));
  EXPECT_TRUE(absl::IsInvalidArgument(join({.rank = -1, .ranks = 2})));
  EXPECT_TRUE(absl::IsInvalidArgument(join({.rank = 0, .ranks = 0})));
  EXPECT_TRUE(absl::IsInvalidArgument(join({.rank = 0, .ranks = 2})));  // no all_gather
  int comm = 0;
  EXPECT_TRUE(
      absl::IsInvalidArgument(Join({.out_of_band = OutOfBand{}, .mpi_comm = &comm}).status()));
  EXPECT_TRUE(
      absl::IsUnimplemented(Join({.world = {.backend = Backend::kSimt, .pin = false}}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(Join({.world = {.stages = 2, .pin = false}}).status()));  // of 1 rank
}

TEST(Join, FindsNumbersThatAreMixedUp) {
  const std::shared_ptr<Region> memory = TableMemory();
  auto& table = *static_cast<Table*>(memory->base());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Gatherer gatherer(table, rank, 2);
      gatherer.swaps = true;
      const absl::Status status =
          Join({.world = {.timeout_s = 5, .pin = false}, .out_of_band = gatherer.way()}).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("Are the ranks' numbers right?"));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Processes, HearOfADeadRank) {
  const auto body = [](Rank& rank) -> absl::Status {
    RETURN_IF_ERROR(rank.exchange().Barrier());
    if (rank.rank() == 1) _exit(0);
    return rank.exchange().Barrier();
  };
  const std::vector<std::string> said = OnProcesses(3, {.timeout_s = 30, .pin = false}, body);
  EXPECT_THAT(said[0], HasSubstr("rank 1 left: UNAVAILABLE: its process ended"));
  EXPECT_THAT(said[2], HasSubstr("rank 1 left: UNAVAILABLE: its process ended"));
}

TEST(Threads, HearOfARankThatFails) {
  const auto body = [](Rank& rank) {
    return rank.rank() == 1 ? absl::InternalError("a fault") : rank.exchange().Barrier();
  };
  const std::vector<absl::Status> said = OnThreads(3, {.timeout_s = 30, .pin = false}, body);
  EXPECT_TRUE(absl::IsAborted(said[0])) << said[0];
  EXPECT_THAT(std::string(said[2].message()), HasSubstr("rank 1 left: INTERNAL: a fault"));
}

}  // namespace
}  // namespace coconet
