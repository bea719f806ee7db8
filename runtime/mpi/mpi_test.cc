// Worlds of MPI processes: each test starts mpirun.

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/testing/mpirun.h"

namespace coconet {
namespace {

using testing::Contains;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

std::string Command(int ranks, const std::string& check, const std::string& options = "") {
  return absl::StrCat("mpirun --oversubscribe ", options, " -n ", ranks, " runtime/mpi/mpi_checks ",
                      check, " 2>&1");
}

class Mpi : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Mpi, testing::Values(1, 2, 3, 4),
                         testing::PrintToStringParamName());

TEST_P(Mpi, DoesWhatEveryWorldMust) {
  const MpiOutcome outcome = RunMpi(Command(GetParam(), "all"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.lines, SizeIs(2 * GetParam())) << outcome.output;
  EXPECT_THAT(outcome.lines, Each(EndsWith(": OK")));
}

TEST(MpiJoin, DoesWhatEveryWorldMustInCommunicatorsOfTheCaller) {
  for (const char* shape : {"", " 1 2", " 2 1"}) {
    const MpiOutcome outcome = RunMpi(Command(4, absl::StrCat("join", shape)));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_THAT(outcome.lines, SizeIs(8)) << outcome.output;
    EXPECT_THAT(outcome.lines, Each(EndsWith(": OK")));
  }
}

TEST(MpiJoin, NamesTheRankThatNeverComes) {
  const MpiOutcome outcome = RunMpi(Command(3, "join-alone"));
  EXPECT_THAT(outcome.output, HasSubstr("0: Join: waited 0.5 s for rank 2, which may be dead"));
  EXPECT_THAT(outcome.output, HasSubstr("1: Join: waited 0.5 s for rank 2, which may be dead"));
}

class LongMpi : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, LongMpi, testing::Values(1, 2, 3, 4),
                         testing::PrintToStringParamName());

TEST_P(LongMpi, DoesAllCollectives) {
  const MpiOutcome outcome = RunMpi(Command(GetParam(), "all-collectives"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.lines, SizeIs(2 * GetParam())) << outcome.output;
  EXPECT_THAT(outcome.lines, Each(EndsWith(": OK")));
}

/// The further arguments of mpi_checks.
struct Shape {
  int ranks, stages, nodes;
};
std::string Arguments(const Shape& shape) {
  return absl::StrCat(" ", shape.stages, " ", shape.nodes);
}

class MpiShapes : public testing::TestWithParam<Shape> {};
auto AllShapes() {
  return testing::Values(Shape{4, 1, 2}, Shape{4, 1, 4}, Shape{4, 2, 2}, Shape{4, 2, 4},
                         Shape{3, 3, 0});
}
std::string NameOfShape(const testing::TestParamInfo<Shape>& info) {
  const Shape& shape = info.param;
  return absl::StrCat(shape.ranks, "Ranks", shape.stages, "Stages", shape.nodes, "Nodes");
}
INSTANTIATE_TEST_SUITE_P(Of, MpiShapes, AllShapes(), NameOfShape);

TEST_P(MpiShapes, DoWhatEveryWorldMust) {
  const MpiOutcome outcome = RunMpi(Command(GetParam().ranks, "all" + Arguments(GetParam())));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.lines, SizeIs(2 * GetParam().ranks)) << outcome.output;
  EXPECT_THAT(outcome.lines, Each(EndsWith(": OK")));
}

class LongMpiShapes : public MpiShapes {};
INSTANTIATE_TEST_SUITE_P(Of, LongMpiShapes, AllShapes(), NameOfShape);

TEST_P(LongMpiShapes, DoAllCollectives) {
  const MpiOutcome outcome =
      RunMpi(Command(GetParam().ranks, "all-collectives" + Arguments(GetParam())));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.lines, SizeIs(2 * GetParam().ranks)) << outcome.output;
  EXPECT_THAT(outcome.lines, Each(EndsWith(": OK")));
}

TEST(MpiShapes, ThatTheRanksDoNotMakeAreRefused) {
  const MpiOutcome outcome = RunMpi(Command(3, "all" + Arguments({3, 2, 0})));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output,
              HasSubstr("INVALID_ARGUMENT: RunWorld: 3 ranks do not make 2 equal stages"));
}

TEST(MpiLanes, CommunicateAtOnce) {
  const MpiOutcome outcome = RunMpi(Command(3, "lanes"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.lines, Each(EndsWith(": OK")));
}

TEST(MpiLanes, DoNotWhereTheUserStartedMpiForOneThread) {
  const MpiOutcome outcome = RunMpi(Command(2, "own-lanes"));
  EXPECT_THAT(outcome.lines,
              Each(HasSubstr("INVALID_ARGUMENT: rank 0: Bind: plan: want library collectives on "
                             "lane 0 only, have them on "
                             "both lanes; to allow that, start MPI with MPI_THREAD_MULTIPLE")))
      << outcome.output;
  EXPECT_THAT(outcome.lines, SizeIs(2)) << outcome.output;
}

TEST(MpiLife, MayBeTheUsers) {
  const MpiOutcome outcome = RunMpi(Command(2, "own-all"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.lines, SizeIs(4)) << outcome.output;
}

class MpiLeave : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(In, MpiLeave, testing::Values("exchange", "library", "step", "lanes"));

TEST_P(MpiLeave, EndsTheOthersWaitsAtOnce) {
  const MpiOutcome outcome = RunMpi(Command(3, absl::StrCat("leave-", GetParam())));
  EXPECT_NE(outcome.exit_code, 0);
  ASSERT_THAT(outcome.lines, SizeIs(3)) << outcome.output;
  for (int rank : {0, 1}) {
    EXPECT_THAT(outcome.lines[rank], StartsWith(absl::StrCat("rank ", rank, ": ABORTED: ")));
    EXPECT_THAT(outcome.lines[rank], EndsWith("rank 2 left: DATA_LOSS: bad page"));
  }
  EXPECT_EQ(outcome.lines[2], "rank 2: DATA_LOSS: bad page");
  EXPECT_LT(outcome.seconds, 30);  // the deadline is 60 s
}

/// Worlds whose ranks share no memory, for checks that fail.
struct Apart {
  const char* check;
  Shape shape;
};
std::string Name(const testing::TestParamInfo<Apart>& info) {
  return absl::StrReplaceAll(info.param.check, {{"-", "_"}});
}

class MpiLeaveApart : public testing::TestWithParam<Apart> {};
INSTANTIATE_TEST_SUITE_P(In, MpiLeaveApart,
                         testing::Values(Apart{"leave-exchange", {4, 1, 2}},
                                         Apart{"leave-library", {4, 1, 2}},
                                         Apart{"leave-send", {4, 2, 2}}),
                         Name);

TEST_P(MpiLeaveApart, EndsTheOthersWaitsAtOnce) {
  const MpiOutcome outcome = RunMpi(Command(4, GetParam().check + Arguments(GetParam().shape)));
  EXPECT_NE(outcome.exit_code, 0);
  ASSERT_THAT(outcome.lines, SizeIs(4)) << outcome.output;
  for (int rank : {0, 1, 2})
    EXPECT_THAT(outcome.lines[rank], EndsWith("rank 3 left: DATA_LOSS: bad page"));
  EXPECT_EQ(outcome.lines[3], "rank 3: DATA_LOSS: bad page");
  EXPECT_LT(outcome.seconds, 30);  // the deadline is 60 s
}

/// A rank dies or arrives too late, in worlds of all shapes.
class MpiFault : public testing::TestWithParam<Apart> {};
std::string FaultName(const testing::TestParamInfo<Apart>& info) {
  const Shape& shape = info.param.shape;
  return absl::StrCat(Name(info), "_", shape.ranks, "x", shape.stages, "x", shape.nodes);
}

std::vector<Apart> Faults(absl::string_view kind) {
  static auto& names = *new std::vector<std::string>();  // the parameters point into it
  names.reserve(100);
  const auto check = [&](absl::string_view of) {
    return names.emplace_back(absl::StrCat(kind, "-", of)).c_str();
  };
  std::vector<Apart> faults;
  for (const Shape& shape : {Shape{3, 1, 0}, Shape{4, 1, 2}, Shape{4, 1, 4}}) {
    for (const char* of : {"exchange", "library"}) faults.push_back({check(of), shape});
  }
  faults.push_back({check("send"), {4, 2, 2}});
  return faults;
}

class MpiDeath : public MpiFault {};
INSTANTIATE_TEST_SUITE_P(In, MpiDeath, testing::ValuesIn(Faults("die")), FaultName);
INSTANTIATE_TEST_SUITE_P(InMidst, MpiDeath,
                         testing::Values(Apart{"die-in-library", {3, 1, 0}},
                                         Apart{"die-in-library", {4, 1, 2}},
                                         Apart{"die-step", {3, 1, 0}}),
                         FaultName);

TEST_P(MpiDeath, IsAnErrorOfTheOthersAtOnceWhichNamesTheDead) {
  const int dead = GetParam().shape.ranks - 1;
  const MpiOutcome outcome = RunMpi(
      Command(dead + 1, GetParam().check + Arguments(GetParam().shape), "--enable-recovery"));
  ASSERT_THAT(outcome.lines, SizeIs(dead)) << outcome.output;  // one line per survivor
  const std::string reason = absl::StrCat("rank ", dead, " left: UNAVAILABLE: its process ended");
  EXPECT_THAT(outcome.lines, Each(HasSubstr(reason))) << outcome.output;
  EXPECT_LT(outcome.seconds, 40);  // the deadline is 60 s
}

TEST(MpiDeathInAStep, NamesTheDeadRankAndItsFlag) {
  const MpiOutcome outcome = RunMpi(Command(2, "die-step", "--enable-recovery"));
  EXPECT_THAT(outcome.lines,
              testing::ElementsAre("rank 0: ABORTED: step 0 \"one-shot sum\" on rank 0: waited for "
                                   "rank 1, flag enter[0]: want epoch 51, "
                                   "found 50; rank 1 left: UNAVAILABLE: its process ended"))
      << outcome.output;
}

class MpiSleep : public MpiFault {};
INSTANTIATE_TEST_SUITE_P(In, MpiSleep, testing::ValuesIn(Faults("sleep")), FaultName);

TEST_P(MpiSleep, BeyondTheDeadlineIsAnErrorOfAllWhichNamesTheSleeper) {
  const int late = GetParam().shape.ranks - 1;
  const MpiOutcome outcome = RunMpi(
      Command(late + 1, GetParam().check + Arguments(GetParam().shape), "--enable-recovery"));
  ASSERT_THAT(outcome.lines, SizeIs(late + 1)) << outcome.output;
  EXPECT_THAT(outcome.lines[late], HasSubstr("ABORTED: ")) << outcome.output;
  const std::vector<std::string> others(outcome.lines.begin(), outcome.lines.begin() + late);
  EXPECT_THAT(others, Contains(HasSubstr("DEADLINE_EXCEEDED: "))) << outcome.output;
  EXPECT_THAT(others, Each(HasSubstr(absl::StrCat("; rank ", late, " may be dead or behind"))))
      << outcome.output;
  EXPECT_LT(outcome.seconds, 30);
}

TEST(MpiLeaveInAStep, OfAKernelThatSendsEndsTheStageBefore) {
  const MpiOutcome outcome = RunMpi(Command(2, "leave-send-step 2 0"));
  EXPECT_THAT(outcome.lines,
              testing::ElementsAre("rank 0: ABORTED: step 0 \"pass on\" on rank 0: waited for rank "
                                   "1, flag enter[0]: want epoch 51, "
                                   "found 50; rank 1 left: DATA_LOSS: bad page",
                                   "rank 1: DATA_LOSS: bad page"))
      << outcome.output;
  EXPECT_LT(outcome.seconds, 30);  // the deadline is 60 s
}

TEST(MpiDeathInAStep, OfAKernelThatSendsNamesTheDeadRankOfTheOtherStage) {
  const MpiOutcome outcome = RunMpi(Command(2, "die-send-step 2 0", "--enable-recovery"));
  EXPECT_THAT(outcome.lines,
              testing::ElementsAre("rank 0: ABORTED: step 0 \"pass on\" on rank 0: waited for rank "
                                   "1, flag enter[0]: want epoch 51, "
                                   "found 50; rank 1 left: UNAVAILABLE: its process ended"))
      << outcome.output;
}

/// The processes that map or hold shared memory of this build's worlds.
std::vector<std::string> HoldersOfOurMemory() {
  std::vector<std::string> holders;
  std::error_code gone;  // ignored: processes come and go meanwhile
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    std::ifstream maps(process.path() / "maps");
    std::ostringstream text;
    text << maps.rdbuf();
    if (absl::StrContains(text.str(), "memfd:coconet"))
      holders.push_back(process.path().filename());
  }
  return holders;
}

TEST(MpiDeathOfAll, LeavesNoMemoryBehind) {
  FILE* pipe = popen(Command(2, "hold").c_str(), "r");
  std::vector<std::string> pids;
  std::array<char, 256> line;
  while (pids.size() < 2 && fgets(line.data(), line.size(), pipe) != nullptr) {
    if (absl::StartsWith(line.data(), "holding "))
      pids.push_back(std::to_string(std::atoi(line.data() + 8)));
  }
  ASSERT_THAT(pids, SizeIs(2));
  EXPECT_THAT(HoldersOfOurMemory(), testing::IsSupersetOf(pids));
  for (const std::string& pid : pids) kill(std::stoi(pid), SIGKILL);
  while (fgets(line.data(), line.size(), pipe) != nullptr) {
  }
  pclose(pipe);
  for (const std::string& pid : pids)
    EXPECT_THAT(HoldersOfOurMemory(), testing::Not(Contains(pid)));
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) {
    EXPECT_THAT(file.path().filename().string(), testing::Not(HasSubstr("coconet")));
  }
}

}  // namespace
}  // namespace coconet
