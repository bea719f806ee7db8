#include "runtime/world.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(UnderMpi, IsWhatTheLaunchersSay) {
  EXPECT_FALSE(UnderMpi());
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) {
    setenv(name, "1", 1);
    EXPECT_TRUE(UnderMpi()) << name;
    unsetenv(name);
  }
}

TEST(RunWorld, RunsOneRankByDefault) {
  EXPECT_EQ(RunWorld({},
                     [](Rank& rank) {
                       EXPECT_EQ(rank.size(), 1);
                       return rank.exchange().Barrier();
                     }),
            absl::OkStatus());
}

TEST(RunWorld, RunsEachRankOnce) {
  std::atomic<int> ranks = 0;
  EXPECT_EQ(RunWorld({.ranks = 3},
                     [&](Rank& rank) {
                       ranks += 1 << (4 * rank.rank());
                       return absl::OkStatus();
                     }),
            absl::OkStatus());
  EXPECT_EQ(ranks, 0x111);
}

TEST(RunWorld, HasStagesAndNodes) {
  EXPECT_EQ(RunWorld({.ranks = 8, .stages = 2, .nodes = 4},
                     [](Rank& rank) {
                       EXPECT_EQ(rank.mesh(),
                                 (Mesh{.stages = 2, .nodes = 2, .ranks = 2, .stages_apart = true}));
                       EXPECT_EQ(rank.stage(), rank.rank() / 4);
                       return absl::OkStatus();
                     }),
            absl::OkStatus());
  EXPECT_EQ(RunWorld({.ranks = 3, .stages = 2}, [](Rank&) { return absl::OkStatus(); }),
            absl::InvalidArgumentError("RunWorld: 3 ranks do not make 2 equal stages"));
}

TEST(RunWorld, WaitsAsLongAsItIsTold) {
  EXPECT_EQ(RunWorld({.ranks = 2, .timeout_s = 0.1},
                     [](Rank& rank) {
                       if (rank.rank() == 1) usleep(300000);
                       return rank.exchange().Barrier();
                     }),
            absl::DeadlineExceededError(
                "exchange on rank 0: waited 0.1 s for rank 1; rank 1 may be dead or behind; "
                "COCONET_TIMEOUT sets the deadline"));
}

TEST(RunWorld, RefusesSillyNumbersOfRanks) {
  for (int ranks : {-1, 1025}) {
    EXPECT_EQ(
        RunWorld({.ranks = ranks}, [](Rank&) { return absl::OkStatus(); }),
        absl::InvalidArgumentError(absl::StrCat("RunWorld: want 1 to 1024 ranks, have ", ranks)));
  }
}

}  // namespace
}  // namespace coconet
