// Worlds on several nodes, for real: each test starts a cluster of network namespaces.

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/command.h"

namespace coconet {
namespace {

using testing::AllOf;
using testing::AnyOfArray;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSubsetOf;
using testing::MatchesRegex;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

constexpr char kRun[] = "bench/cluster/run.sh";
constexpr char kChecks[] = "runtime/mpi/mpi_checks";
constexpr int kCannot = 77;

std::vector<std::string> OnCluster(std::vector<std::string> options,
                                   std::vector<std::string> program) {
  std::vector<std::string> argv = {kRun};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.push_back("--");
  argv.insert(argv.end(), program.begin(), program.end());
  return argv;
}

/// Lines that begin with `start`, sorted.
std::vector<std::string> Lines(const std::string& text, absl::string_view start) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, start)) lines.push_back(std::string(line));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

class Cluster : public testing::Test {
 protected:
  void SetUp() override {
    const Ended ended = RunCommand(OnCluster({"--nodes=1"}, {"true"}));
    if (ended.code == kCannot) GTEST_SKIP() << ended.err;
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
};

/// Two nodes with two ranks each, and so many stages.
void ExpectAllOk(const std::string& check, const std::string& stages, int lines) {
  Command command(OnCluster({"--nodes=2", "--ranks-per-node=2"}, {kChecks, check, stages}));
  const Ended ended = command.Wait(300);
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_THAT(Lines(ended.out, "rank "), AllOf(SizeIs(lines), Each(EndsWith(": OK"))))
      << ended.out << ended.err;
}

TEST_F(Cluster, HasNodesThatMpiTellsApart) {
  ExpectAllOk("two-nodes", "1", 8);
  ExpectAllOk("two-nodes", "2", 8);
}

TEST_F(Cluster, DoesWhatEveryWorldMust) { ExpectAllOk("all", "1", 8); }

TEST_F(Cluster, DoesItInStages) { ExpectAllOk("all", "2", 8); }

TEST_F(Cluster, MayHaveOneRankANodeAndThreeNodes) {
  const Ended ended = RunCommand(OnCluster({"--nodes=3"}, {kChecks, "collectives"}));
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(Lines(ended.out, "rank "), AllOf(SizeIs(6), Each(EndsWith(": OK"))))
      << ended.out << ended.err;
}

TEST_F(Cluster, TellsOtherNodesWhoLeftAndWhy) {
  for (const char* check : {"leave-exchange", "leave-library"}) {
    const Ended ended =
        RunCommand(OnCluster({"--nodes=2", "--ranks-per-node=2"}, {kChecks, check}));
    EXPECT_NE(ended.code, 0);
    const std::vector<std::string> lines = Lines(ended.out, "rank ");
    ASSERT_THAT(lines, SizeIs(4)) << ended.out << ended.err;
    EXPECT_THAT(lines, Each(EndsWith("DATA_LOSS: bad page"))) << ended.err;
    EXPECT_THAT(lines[0], HasSubstr("on rank 0: rank ")) << ended.err;
  }
}

class ClusterDeath : public Cluster,
                     public testing::WithParamInterface<std::pair<const char*, const char*>> {};
INSTANTIATE_TEST_SUITE_P(In, ClusterDeath,
                         testing::Values(std::pair("die-exchange", "1"),
                                         std::pair("die-library", "1"),
                                         std::pair("die-in-library", "1"),
                                         std::pair("die-send", "2")),
                         [](const auto& info) { return "Case" + std::to_string(info.index); });

/// What survivors say of the ranks that died: of four, those without a line in `lines`.
std::vector<std::string> Deaths(const std::vector<std::string>& lines) {
  std::vector<std::string> deaths;
  for (int rank = 0; rank < 4; ++rank) {
    const auto is_of_rank = [&](const std::string& line) {
      return absl::StartsWith(line, absl::StrCat("rank ", rank));
    };
    if (std::any_of(lines.begin(), lines.end(), is_of_rank)) continue;
    deaths.push_back(absl::StrCat("rank ", rank, " left: UNAVAILABLE: its process ended"));
  }
  return deaths;
}

/// Open MPI 4.1's mpirun may crash when a rank sends it a help message to print
/// (https://github.com/open-mpi/ompi/issues/8356). All ranks end with it and print nothing.
bool HasMpirunCrashed(const std::string& err) {
  return absl::StrContains(err, "show_help.c") && absl::StrContains(err, "Segmentation fault");
}

TEST_P(ClusterDeath, OfOneRankIsAnErrorOfTheOthersInTime) {
  const auto& [check, stages] = GetParam();
  const std::vector<std::string> options = {"--nodes=2", "--ranks-per-node=2",
                                            "--mpirun=--enable-recovery"};
  const std::vector<std::string> argv = OnCluster(options, {kChecks, check, stages});
  // Open MPI 4.1's mpirun does not always end after a death on a node that it is not on. The ranks
  // do.
  std::optional<Command> started;
  const auto has_crashed = [&] { return HasMpirunCrashed(started->err()); };
  const auto has_spoken = [&] { return Lines(started->out(), "rank ").size() >= 2; };
  const auto has_ended = [&] { return started->Descendants("mpi_checks").empty(); };
  for (int tries = 0; tries == 0 || (tries < 3 && has_crashed()); ++tries) {
    started.emplace(argv);
    Eventually([&] { return has_spoken() || has_crashed(); }, 30);
    Eventually(has_ended, 30);
  }
  Command& command = *started;
  EXPECT_TRUE(has_spoken()) << command.err();
  EXPECT_TRUE(has_ended()) << command.err();
  const std::vector<std::string> lines = Lines(command.out(), "rank ");
  // Open MPI 4.1 ends a process of its own accord, in the midst of a message to one that died on
  // another node.
  const bool ended_by_mpi = absl::StrContains(command.err(), "pml_ob1_sendreq.c") &&
                            absl::StrContains(command.err(), "FATAL");
  ASSERT_THAT(lines, SizeIs(testing::AllOf(testing::Ge(ended_by_mpi ? 2 : 3), testing::Le(3))))
      << command.err();
  const std::vector<std::string> deaths = Deaths(lines);
  ASSERT_THAT(deaths, Contains(StartsWith("rank 3 ")));
  for (const std::string& line : lines) {
    EXPECT_TRUE(std::any_of(deaths.begin(), deaths.end(), [&](const auto& death) {
      return absl::EndsWith(line, death);
    })) << line;
  }
  command.Signal(SIGTERM);
  command.Wait();
}

class ClusterEnd : public Cluster, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(By, ClusterEnd, testing::Values(SIGINT, SIGTERM, SIGKILL),
                         [](const auto& info) { return std::string(sigabbrev_np(info.param)); });

TEST_P(ClusterEnd, OfTheScriptIsTheEndOfAll) {
  Command command(OnCluster({"--nodes=2", "--ranks-per-node=2"}, {kChecks, "hold"}));
  ASSERT_TRUE(Eventually([&] { return Lines(command.out(), "holding ").size() == 4; }))
      << command.err();
  std::vector<pid_t> all;
  for (const char* name : {"mpi_checks", "mpirun", "orted", "unshare"}) {
    const std::vector<pid_t> found = command.Descendants(name);
    EXPECT_FALSE(found.empty()) << name;
    all.insert(all.end(), found.begin(), found.end());
  }
  EXPECT_THAT(all, SizeIs(4 + 1 + 1 + 1));
  command.Signal(GetParam());
  EXPECT_NE(command.Wait().code, 0);
  EXPECT_TRUE(Eventually([&] { return std::none_of(all.begin(), all.end(), IsRunning); }, 30));
}

/// Runs `sweep` on two nodes that do not see each other's cache folder.
class ClusterSweep : public Cluster {
 protected:
  ClusterSweep()
      : folder_(std::filesystem::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_);
  }
  ~ClusterSweep() override { std::filesystem::remove_all(folder_); }

  /// `variables`: those of the environment on node 1 only.
  Ended Sweep(int ranks_per_node, const std::string& variables) const {
    const std::string script = R"sh(
        mkdir -p "$0/$(hostname)" "$0/cache" && mount --bind "$0/$(hostname)" "$0/cache" || exit
        variables="$1"; shift; [ "$(hostname)" = node1 ] || variables=
        exec env $variables "$@")sh";
    return RunCommand(OnCluster({"--nodes=2", absl::StrCat("--ranks-per-node=", ranks_per_node)},
                                {"sh", "-c", script, folder_.string(), variables, "autotune/sweep",
                                 "sgd", "--N=3001"}),
                      {{"COCONET_CACHE_DIR", (folder_ / "cache").string()}});
  }

  std::vector<std::string> KernelsOf(const std::string& node) const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder_ / node / "objects")) {
      if (entry.path().extension() == ".so") names.push_back(entry.path().filename().string());
    }
    return names;
  }

  void ExpectTunesAndThenHits(int ranks_per_node, const std::string& variables) const {
    const Ended first = Sweep(ranks_per_node, variables);
    ASSERT_EQ(first.code, 0) << first.out << first.err;
    EXPECT_THAT(first.out, HasSubstr("(processes), 2 nodes"));
    EXPECT_THAT(first.out, HasSubstr("stored as "));
    for (const char* failure : {"wrong answer", "quarantined", "rank 1", "rank 2"})
      EXPECT_THAT(first.out, Not(HasSubstr(failure)));
    const Ended second = SweepUntilHit([&] { return Sweep(ranks_per_node, variables); });
    ASSERT_EQ(second.code, 0) << second.out << second.err;
    EXPECT_THAT(second.out, HasSubstr("cache hit"));
    EXPECT_THAT(second.out, HasSubstr(" 0 kernel files compiled"));
  }

  const std::filesystem::path folder_;
};

constexpr char kNoCompiler[] = "COCONET_CXX=/no/compiler";

TEST_F(ClusterSweep, CopiesKernelsToNodesThatShareNoFolder) {
  ExpectTunesAndThenHits(2, kNoCompiler);
  EXPECT_THAT(KernelsOf("node1"), Not(IsEmpty()));
  EXPECT_THAT(KernelsOf("node1"), IsSubsetOf(KernelsOf("node0")));
}

class ClusterProcessors : public ClusterSweep {
 protected:
  /// A processor with fewer features than this one; other architectures have no such variable.
  static constexpr char kLesser[] = "COCONET_HOST_ARCH=x86-64";
  void SetUp() override {
    ClusterSweep::SetUp();
#ifndef __x86_64__
    GTEST_SKIP() << "it takes an x86-64 processor";
#endif
  }
};

TEST_F(ClusterProcessors, OfNodesThatDifferGetKernelsOfTheirOwn) {
  ExpectTunesAndThenHits(1, kLesser);
  EXPECT_THAT(KernelsOf("node1"), Not(IsEmpty()));
  EXPECT_THAT(KernelsOf("node1"), Each(Not(AnyOfArray(KernelsOf("node0")))));
}

TEST_F(ClusterProcessors, ThatDifferNeedACompilerEach) {
  const Ended ended = Sweep(1, absl::StrCat(kLesser, " ", kNoCompiler));
  EXPECT_EQ(ended.code, 2) << ended.out << ended.err;
  EXPECT_THAT(Lines(ended.err, "coconet sweep: "),
              ElementsAre(AllOf(HasSubstr("rank 1: host compiler: want /no/compiler"),
                                HasSubstr("compiled there"))));
}

TEST(ClusterScript, SaysWhatItWants) {
  EXPECT_EQ(RunCommand(OnCluster({"--nodes=0"}, {"true"})).err,
            "cluster: --nodes=0: want 1 to 64; see --help\n");
  EXPECT_EQ(RunCommand(OnCluster({"--rat=1"}, {"true"})).err,
            "cluster: unknown option --rat=1; see --help\n");
  EXPECT_EQ(RunCommand({kRun, "true"}).code, 2);
  EXPECT_THAT(RunCommand({kRun, "--help"}).out, StartsWith("Runs a program under Open MPI"));
}

TEST(ClusterScript, SaysInOneLineWhereItCannot) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "few_tools";
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink("/usr/bin/readlink", folder / "readlink");
  const Ended ended = RunCommand({"/bin/bash", kRun, "--", "true"}, {{"PATH", folder.string()}});
  EXPECT_EQ(ended.code, kCannot);
  EXPECT_THAT(ended.err, MatchesRegex("cluster: not here: [a-z]+ is missing .*\n"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace coconet
