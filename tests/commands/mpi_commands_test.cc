// Ranks as MPI processes, end to end, through mpirun.

#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/command.h"
#include "tests/harness/test_data.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> Mpirun(int ranks, const std::vector<std::string>& command) {
  std::vector<std::string> argv = {"mpirun", "--oversubscribe", "-n", absl::StrCat(ranks)};
  argv.insert(argv.end(), command.begin(), command.end());
  return argv;
}

/// One cache of kernels for all tests: what is not tested should not be compiled twice.
const std::map<std::string, std::string>& Environment() {
  static const auto* environment = new std::map<std::string, std::string>{
      {"COCONET_CACHE_DIR", absl::StrCat(testing::TempDir(), "/kernels")}};
  return *environment;
}

/// A cache file that nobody has.
std::string NewCacheFile() {
  static int count = 0;
  return absl::StrCat(testing::TempDir(), "/tuning_", count++, ".db");
}

/// Without Open MPI's own: those of other jobs come and go.
std::set<std::string> SharedMemoryFiles() {
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    const std::string name = entry.path().filename();
    if (!absl::StartsWith(name, "vader_segment")) files.insert(name);
  }
  return files;
}

TEST(MpiFolders, OfOneRankThatAreNoneAreSaidOnceBeforeACompile) {
  const std::string file = absl::StrCat(testing::TempDir(), "/a_file");
  std::ofstream(file) << "no folder";
  for (const std::string& bad : {file, file + "/below", std::string("/proc/none")}) {
    std::vector<std::string> argv = {"mpirun", "--oversubscribe"};
    // Nothing is compiled yet in the first rank's.
    const std::string own = absl::StrCat(NewCacheFile(), "_kernels");
    for (const std::string& folder : {own, bad}) {
      if (folder == bad) argv.emplace_back(":");
      for (const std::string& word :
           {std::string("-n"), std::string("1"), std::string("-x"), "COCONET_CACHE_DIR=" + folder,
            std::string("autotune/sweep"), std::string("sgd"), std::string("--N=1000"),
            std::string("--budget=0"), std::string("--cache=:none:")}) {
        argv.push_back(word);
      }
    }
    const Ended ended = RunCommand(argv);
    EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
    const std::string note = absl::StrCat("rank 1: cache directory ", bad, ": ");
    const size_t said = ended.err.find(note), begun = ended.err.find("tuning sgd");
    EXPECT_NE(said, std::string::npos) << ended.err;
    EXPECT_NE(begun, std::string::npos) << ended.err;
    EXPECT_LT(said, begun) << ended.err;
    EXPECT_EQ(ended.err.find(note, said + 1), std::string::npos) << ended.err;
  }
}

class MpiTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, MpiTest, testing::Values(2, 3), testing::PrintToStringParamName());

TEST_P(MpiTest, VariantsComputeWhatTheProgramSays) {
  const uint64_t seed = FreshSeed();
  const Ended ended = RunCommand(
      Mpirun(GetParam(), {"tests/mpi_differential", Environment().at("COCONET_CACHE_DIR"),
                          absl::StrCat(seed), "1", "1"}));
  EXPECT_EQ(ended.code, 0) << "COCONET_SEED=" << seed << "\n" << ended.err;
  EXPECT_THAT(ended.out, HasSubstr(absl::StrCat(" variants on ", GetParam(), " shm ranks")));
  EXPECT_THAT(ended.out, Not(testing::StartsWith("0 variants")));
}

TEST(MpiNodesTest, VariantsOfTwoNodesComputeWhatTheProgramSays) {
  const uint64_t seed = FreshSeed();
  const Ended ended =
      RunCommand(Mpirun(4, {"tests/mpi_differential", Environment().at("COCONET_CACHE_DIR"),
                            absl::StrCat(seed), "2", "1"}));
  EXPECT_EQ(ended.code, 0) << "COCONET_SEED=" << seed << "\n" << ended.err;
  EXPECT_THAT(ended.out, HasSubstr(" variants on 4 mpi ranks"));
  EXPECT_THAT(ended.out, Not(testing::StartsWith("0 variants")));
}

TEST(MpiStages, VariantsComputeWhatTheProgramSays) {
  const uint64_t seed = FreshSeed();
  const Ended ended =
      RunCommand(Mpirun(4, {"tests/mpi_differential", Environment().at("COCONET_CACHE_DIR"),
                            absl::StrCat(seed), "1", "2"}));
  EXPECT_EQ(ended.code, 0) << "COCONET_SEED=" << seed << "\n" << ended.err;
  EXPECT_THAT(ended.out, HasSubstr(" variants on 4 shm ranks"));
  EXPECT_THAT(ended.out, Not(testing::StartsWith("0 variants")));
}

TEST_P(MpiTest, SweepTunesOnceAndHitsTheSecondTime) {
  const std::string cache = absl::StrCat("--cache=", NewCacheFile());
  const Ended first =
      RunCommand(Mpirun(GetParam(), {"autotune/sweep", "sgd", "--N=3001", cache}), Environment());
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out,
              HasSubstr(absl::StrCat("sgd N=3001 f32, ", GetParam(), " ranks (processes)")));
  EXPECT_THAT(first.out, HasSubstr("stored as "));
  EXPECT_THAT(first.out, Not(HasSubstr("wrong answer")));
  const Ended second = SweepUntilHit([&] {
    return RunCommand(Mpirun(GetParam(), {"autotune/sweep", "sgd", "--N=3001", cache}),
                      Environment());
  });
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("cache hit"));
  EXPECT_THAT(second.out, HasSubstr(" 0 kernel files compiled"));
  // MPI may have something to say there; a tuner has nothing.
  EXPECT_THAT(second.err, Not(testing::AnyOf(HasSubstr("variants"), HasSubstr("checked"),
                                             HasSubstr("warning"))));
}

TEST(Mpi, RanksThatDisagreeOnTheProgramAreTold) {
  const std::string cache = absl::StrCat("--cache=", NewCacheFile());
  const std::vector<std::string> argv = {
      "mpirun", "--oversubscribe", "-n",  "1",       "autotune/sweep",
      "sgd",    "--N=100",         cache, ":",       "-n",
      "1",      "autotune/sweep",  "sgd", "--N=101", cache};
  const Ended ended = RunCommand(argv, Environment());
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("want the same program and sizes on all ranks"));
  EXPECT_THAT(ended.out, Not(HasSubstr("stored")));
}

TEST(Mpi, RanksThatDisagreeOnAnOptionAreTold) {
  const std::vector<std::vector<std::string>> others = {
      {"env", "COCONET_VERIFY=1", "autotune/sweep"},
      {"env", "COCONET_ASSERT_CACHED=1", "autotune/sweep"},
      {"env", "COCONET_DEBUG=2", "autotune/sweep"},
      {"autotune/sweep", "--order=rank"},
      {"autotune/sweep", "--sum-rounding=each"},
      {"autotune/sweep", "--nans=none"},
      {"autotune/sweep", "--budget=7"},
  };
  const char* const kNames[] = {"COCONET_VERIFY=1",
                                "COCONET_ASSERT_CACHED=1",
                                "COCONET_DEBUG=2",
                                "SessionOptions::sum_order=rank",
                                "SessionOptions::sum_rounding=each",
                                "SessionOptions::nans=none",
                                "SessionOptions::budget_s=7"};
  for (size_t i = 0; i < others.size(); ++i) {
    const std::string cache = absl::StrCat("--cache=", NewCacheFile());
    std::vector<std::string> argv = {"mpirun", "--oversubscribe", "-n",  "1", "autotune/sweep",
                                     "sgd",    "--N=100",         cache, ":", "-n",
                                     "1"};
    argv.insert(argv.end(), others[i].begin(), others[i].end());
    argv.insert(argv.end(), {"sgd", "--N=100", cache});
    const Ended ended = RunCommand(argv, Environment());
    EXPECT_EQ(ended.code, 2) << ended.err;
    EXPECT_THAT(ended.err,
                HasSubstr(absl::StrCat("want the same options on all ranks; rank 1 has \"",
                                       kNames[i], "\" where rank 0 has ")));
  }
}

/// What `sweep` complained of.
std::vector<std::string> Complaints(const Ended& ended) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(ended.err, '\n')) {
    if (absl::StartsWith(line, "coconet sweep:")) lines.emplace_back(line);
  }
  return lines;
}

TEST(Mpi, MistakesAreSaidOnce) {
  const Ended ended = RunCommand(Mpirun(3, {"autotune/sweep", "adm"}), Environment());
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_THAT(Complaints(ended), testing::ElementsAre(HasSubstr("unknown workload 'adm'")))
      << ended.err;
}

TEST(Mpi, AFileThatCannotBeWrittenIsSaidOnceBeforeAnythingIsTuned) {
  const Ended ended =
      RunCommand(Mpirun(3, {"autotune/sweep", "sgd", "--N=100",
                            absl::StrCat("--cache=", NewCacheFile()), "--json=/nowhere/x.json"}),
                 Environment());
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_THAT(Complaints(ended),
              testing::ElementsAre(HasSubstr("--json: cannot write /nowhere/x.json")))
      << ended.err;
  EXPECT_THAT(ended.out, Not(HasSubstr("stored")));
}

TEST(Mpi, GpusThatAreNotHereAreSaidOnce) {
  std::map<std::string, std::string> environment = Environment();
  environment["CUDA_VISIBLE_DEVICES"] = "";  // where there are some
  const Ended ended =
      RunCommand(Mpirun(3, {"autotune/sweep", "adam", "--backend=cuda"}), environment);
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_THAT(Complaints(ended),
              testing::ElementsAre(testing::ContainsRegex("sweep: rank 0: .*GPU")))
      << ended.err;
}

TEST(Mpi, ARankThatDiesEndsTheJobAndLeavesNothingBehind) {
  const std::set<std::string> before = SharedMemoryFiles();
  const std::string cache = NewCacheFile();
  Command job(Mpirun(3, {"autotune/sweep", "adam", "--N=2Mi", absl::StrCat("--cache=", cache)}),
              Environment());
  std::vector<pid_t> ranks;
  ASSERT_TRUE(Eventually([&] {
    ranks = job.Descendants("sweep");
    return ranks.size() == 3 && absl::StrContains(job.err(), "variants");
  })) << job.err();
  kill(ranks[1], SIGKILL);
  const Ended ended = job.Wait(30);
  EXPECT_NE(ended.code, 0);
  EXPECT_NE(ended.code, kTookTooLong) << ended.err;
  EXPECT_THAT(job.Descendants("sweep"), IsEmpty());
  // mpirun does not wait for what it has killed.
  for (pid_t rank : ranks)
    EXPECT_TRUE(Eventually([rank] { return !IsRunning(rank); }, 10)) << rank << " is still there";
  for (const std::string& file : SharedMemoryFiles())
    EXPECT_EQ(before.count(file), 1u) << "/dev/shm/" << file;
  // And the cache is as good as before.
  const Ended next =
      RunCommand(Mpirun(3, {"autotune/sweep", "sgd", "--N=3001", absl::StrCat("--cache=", cache)}),
                 Environment());
  EXPECT_EQ(next.code, 0) << next.err;
  EXPECT_THAT(next.err, Not(HasSubstr("warning")));
}

}  // namespace
}  // namespace coconet
