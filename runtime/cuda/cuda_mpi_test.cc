// GPU worlds whose ranks are MPI processes, over a fake driver: each test starts mpirun.

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/testing/mpirun.h"

namespace coconet {
namespace {

using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

MpiOutcome RunCheck(const std::string& check, int ranks, int gpus, int stages = 1, int nodes = 0,
                    const std::string& switched = "no") {
  return RunMpi(absl::StrCat("mpirun --oversubscribe -n ", ranks, " runtime/cuda/cuda_mpi_checks ",
                             check, " ", gpus, " ", stages, " ", nodes, " ", switched, " 2>&1"));
}

struct Case {
  int ranks, gpus, stages, nodes;
};
class CudaMpi : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Of, CudaMpi,
                         testing::Values(Case{1, 1, 1, 0}, Case{2, 1, 1, 0}, Case{3, 8, 1, 0},
                                         Case{4, 2, 1, 2}, Case{4, 8, 2, 0}),
                         [](const auto& info) {
                           const Case& c = info.param;
                           return absl::StrCat(c.ranks, "Ranks", c.gpus, "Gpus", c.stages, "Stages",
                                               c.nodes, "Nodes");
                         });

TEST_P(CudaMpi, DoesWhatEveryWorldMust) {
  const Case& c = GetParam();
  const MpiOutcome outcome = RunCheck("all", c.ranks, c.gpus, c.stages, c.nodes);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.lines, SizeIs(2 * c.ranks)) << outcome.output;
  EXPECT_THAT(outcome.lines, Each(EndsWith(": OK")));
}

TEST(CudaMpi, PeersReachMemoryThatACallerHas) {
  for (const auto& [ranks, gpus, nodes] : {std::array{3, 1, 0}, {2, 8, 0}, {4, 2, 2}}) {
    const MpiOutcome outcome = RunCheck("adopted", ranks, gpus, /*stages=*/1, nodes);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_THAT(outcome.lines, SizeIs(2 * ranks)) << outcome.output;
  }
}

TEST(CudaMpi, ProcessesTakeTheGpusInTurns) {
  const MpiOutcome outcome = RunCheck("place", 3, 2);
  ASSERT_THAT(outcome.lines, SizeIs(3)) << outcome.output;
  EXPECT_THAT(outcome.lines[0], HasSubstr("staged; 2 per GPU; rank 0: 2 ranks share GPU 0"));
  EXPECT_THAT(outcome.lines[1], HasSubstr("staged; 1 per GPU; rank 0: 2 ranks share GPU 0"));
  EXPECT_THAT(outcome.lines[2], HasSubstr("staged; 2 per GPU; rank 0: 2 ranks share GPU 0"));
}

TEST(CudaMpi, NoGpuIsSaid) {
  const MpiOutcome outcome = RunCheck("all", 2, 0);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output,
              HasSubstr("UNAVAILABLE: rank 0: GPU 0: want one of the 0 that are visible"));
}

TEST(CudaMpi, MemoryThatIsNotSharedIsAnErrorOfAll) {
  const struct {
    const char *check, *words;
  } kCases[] = {
      {"fail-alloc", "rank 2: GPU 0: 2 MiB: cuMemAlloc: "},
      {"fail-export", "rank 2: cuIpcGetMemHandle: "},
      {"fail-open",
       "rank 2: the memory of rank 0, another process, on its GPU: cuIpcOpenMemHandle: "}};
  for (const auto& [check, words] : kCases) {
    const MpiOutcome outcome = RunCheck(check, 3, 1);
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.lines, SizeIs(3)) << outcome.output;
    EXPECT_THAT(
        outcome.lines,
        Each(HasSubstr(absl::StrCat(words, "CUDA_ERROR_OF_A_TEST (999): what a driver says"))));
  }
}

TEST(CudaMpi, AddressesOfAllRanksPassAsFilesOrFabricHandles) {
  for (const auto& [check, ranks, nodes, switched] :
       {std::tuple("multicast", 3, 0, "files"), std::tuple("multicast", 4, 2, "fabric"),
        std::tuple("fail-multicast", 3, 0, "files")}) {
    const MpiOutcome outcome = RunCheck(check, ranks, 8, 1, nodes, switched);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_THAT(outcome.lines, SizeIs(2 * ranks)) << outcome.output;
    EXPECT_THAT(outcome.lines, Each(EndsWith(": OK")));
  }
  const MpiOutcome outcome = RunCheck("multicast", 2, 8, 1, 0, "alone");
  ASSERT_THAT(outcome.lines, SizeIs(2)) << outcome.output;
  EXPECT_THAT(outcome.lines,
              Each(AllOf(HasSubstr("no multicast: rank 0: cuMemExportToShareableHandle: "),
                         HasSubstr("; rank 0: cuMemCreate: "))));
}

TEST(CudaMpi, ARankThatLeavesEndsTheWaitsOfKernels) {
  const MpiOutcome outcome = RunCheck("leave-step", 3, 1);
  EXPECT_NE(outcome.exit_code, 0);
  ASSERT_THAT(outcome.lines, SizeIs(3)) << outcome.output;
  for (int rank : {0, 1})
    EXPECT_THAT(outcome.lines[rank],
                AllOf(HasSubstr(absl::StrCat("on rank ", rank)), HasSubstr("bad page")));
  EXPECT_LT(outcome.seconds, 30);  // the deadline is 60 s
}

TEST(CudaMpi, AProcessThatDiesEndsTheWaitsOfKernels) {
  const MpiOutcome outcome = RunCheck("die-step", 3, 1);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("rank 2 left")) << outcome.output;
  EXPECT_LT(outcome.seconds, 30);
}

}  // namespace
}  // namespace coconet
