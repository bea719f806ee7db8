// Library collectives of GPU worlds whose ranks are MPI processes, by a fake NCCL: each
// test starts mpirun.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>

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

MpiOutcome RunCheck(const std::string& check, int ranks, int stages = 1, int nodes = 0) {
  std::string folder = "/dev/shm/coconet-nccl-XXXXXX";
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  const MpiOutcome outcome =
      RunMpi(absl::StrCat("mpirun --oversubscribe -n ", ranks, " runtime/nccl/nccl_mpi_checks ",
                          check, " ", stages, " ", nodes, " ", folder, " 2>&1"));
  std::filesystem::remove_all(folder);
  return outcome;
}

TEST(NcclMpi, DoesTheCollectivesOfPlans) {
  for (const auto& [ranks, stages, nodes] :
       {std::tuple(2, 1, 0), std::tuple(3, 1, 0), std::tuple(4, 1, 2), std::tuple(4, 2, 0)}) {
    const MpiOutcome outcome = RunCheck("all", ranks, stages, nodes);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_THAT(outcome.lines, AllOf(SizeIs(ranks), Each(EndsWith(": OK")))) << outcome.output;
  }
}

TEST(NcclMpi, SharesMemoryByItsWindowsWhereTheDriverDoesNot) {
  for (const auto& [ranks, stages, nodes] : {std::tuple(3, 1, 0), std::tuple(4, 2, 0)}) {
    const MpiOutcome outcome = RunCheck("windows", ranks, stages, nodes);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_THAT(outcome.lines, AllOf(SizeIs(ranks), Each(EndsWith(": OK")))) << outcome.output;
  }
}

TEST(NcclMpi, AProcessThatDiesEndsTheCollectivesOfOthers) {
  const MpiOutcome outcome = RunCheck("die", 3);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("rank 2 left")) << outcome.output;
  EXPECT_LT(outcome.seconds, 30);  // the deadline is 60 s
}

TEST(NcclMpi, AProcessThatLeavesEndsTheCollectivesOfOthers) {
  const MpiOutcome outcome = RunCheck("leave", 3);
  EXPECT_NE(outcome.exit_code, 0);
  ASSERT_THAT(outcome.lines, SizeIs(3)) << outcome.output;
  for (int rank : {0, 1})
    EXPECT_THAT(outcome.lines[rank], AllOf(HasSubstr(absl::StrCat("step 0 \"sum\" on rank ", rank)),
                                           HasSubstr("bad page")));
  EXPECT_LT(outcome.seconds, 30);
}

TEST(NcclMpi, AllDoWithoutWhereItDoesNotStartInOneProcess) {
  const MpiOutcome outcome = RunCheck("without", 3);
  ASSERT_THAT(outcome.lines, SizeIs(3)) << outcome.output;
  EXPECT_THAT(outcome.lines, Each(AllOf(HasSubstr("staged; not by NCCL: rank 0: nccl"),
                                        HasSubstr("an error of a test (2)"))));
}

}  // namespace
}  // namespace coconet
