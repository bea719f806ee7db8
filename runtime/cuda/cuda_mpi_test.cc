// Worlds of GPUs whose ranks are MPI processes, for real but the GPUs: each test starts mpirun.

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

struct Outcome {
  int exit_code = -1;
  double seconds = 0;
  std::vector<std::string> lines;  // that the ranks printed, sorted
  std::string output;
};

Outcome RunMpi(const std::string& check, int ranks, int gpus, int stages = 1, int nodes = 0) {
  const std::string command = absl::StrCat("mpirun --oversubscribe -n ", ranks, " runtime/cuda/cuda_mpi_checks ", check, " ", gpus, " ", stages, " ", nodes, " 2>&1");
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) outcome.output.append(buffer.data(), n);
  outcome.exit_code = WEXITSTATUS(pclose(pipe));
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (absl::string_view line : absl::StrSplit(outcome.output, '\n')) {
    if (absl::StartsWith(line, "rank ")) outcome.lines.emplace_back(line);
  }
  std::sort(outcome.lines.begin(), outcome.lines.end());
  return outcome;
}

struct Case {
  int ranks, gpus, stages, nodes;
};
class CudaMpi : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Of, CudaMpi, testing::Values(Case{1, 1, 1, 0}, Case{2, 1, 1, 0}, Case{3, 8, 1, 0}, Case{4, 2, 1, 2}, Case{4, 8, 2, 0}),
                         [](const auto& info) {
                           const Case& c = info.param;
                           return absl::StrCat(c.ranks, "Ranks", c.gpus, "Gpus", c.stages, "Stages", c.nodes, "Nodes");
                         });

TEST_P(CudaMpi, DoesWhatEveryWorldMust) {
  const Case& c = GetParam();
  const Outcome outcome = RunMpi("all", c.ranks, c.gpus, c.stages, c.nodes);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_THAT(outcome.lines, SizeIs(2 * c.ranks)) << outcome.output;
  EXPECT_THAT(outcome.lines, Each(EndsWith(": OK")));
}

TEST(CudaMpi, ProcessesTakeTheGpusInTurns) {
  const Outcome outcome = RunMpi("place", 3, 2);
  ASSERT_THAT(outcome.lines, SizeIs(3)) << outcome.output;
  EXPECT_THAT(outcome.lines[0], HasSubstr("staged; 2 a GPU; rank 0: 2 ranks share GPU 0"));
  EXPECT_THAT(outcome.lines[1], HasSubstr("staged; 1 a GPU; rank 0: 2 ranks share GPU 0"));
  EXPECT_THAT(outcome.lines[2], HasSubstr("staged; 2 a GPU; rank 0: 2 ranks share GPU 0"));
}

TEST(CudaMpi, NoGpuIsSaid) {
  const Outcome outcome = RunMpi("all", 2, 0);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("UNAVAILABLE: rank 0: GPU 0: want one of the 0 that are visible"));
}

TEST(CudaMpi, MemoryThatIsNotSharedIsAnErrorOfAll) {
  const struct {
    const char *check, *words;
  } kCases[] = {{"fail-alloc", "rank 2: GPU 0: 2 MiB: cuMemAlloc: "},
                {"fail-export", "rank 2: cuIpcGetMemHandle: "},
                {"fail-open", "rank 2: the memory of rank 0, another process, on its GPU: cuIpcOpenMemHandle: "}};
  for (const auto& [check, words] : kCases) {
    const Outcome outcome = RunMpi(check, 3, 1);
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.lines, SizeIs(3)) << outcome.output;
    EXPECT_THAT(outcome.lines, Each(HasSubstr(absl::StrCat(words, "CUDA_ERROR_OF_A_TEST (999): what a driver says"))));
  }
}

TEST(CudaMpi, ARankThatLeavesEndsTheWaitsOfKernels) {
  const Outcome outcome = RunMpi("leave-step", 3, 1);
  EXPECT_NE(outcome.exit_code, 0);
  ASSERT_THAT(outcome.lines, SizeIs(3)) << outcome.output;
  for (int rank : {0, 1}) EXPECT_THAT(outcome.lines[rank], AllOf(HasSubstr(absl::StrCat("on rank ", rank)), HasSubstr("bad page")));
  EXPECT_LT(outcome.seconds, 30);  // the deadline is 60 s
}

TEST(CudaMpi, AProcessThatDiesEndsTheWaitsOfKernels) {
  const Outcome outcome = RunMpi("die-step", 3, 1);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("rank 2 left")) << outcome.output;
  EXPECT_LT(outcome.seconds, 30);
}

}  // namespace
}  // namespace coconet
