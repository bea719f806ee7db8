#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/command.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Runs the commands as a user does, with caches of their own.
class SweepTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root_ = fs::path(::testing::TempDir()) / absl::StrCat("sweep_test_", getpid());
    fs::create_directories(root_ / "work");
    setenv("COCONET_CACHE_DIR", (root_ / "cache").c_str(), 1);
    setenv("BUILD_WORKING_DIRECTORY", (root_ / "work").c_str(), 1);
  }
  static void TearDownTestSuite() { fs::remove_all(root_); }

  static std::vector<std::string> ArgvOf(const std::string& command,
                                         std::vector<std::string> args) {
    args.insert(args.begin(), absl::StrCat("autotune/", command));
    return args;
  }
  static Ended Run(const std::string& command, std::vector<std::string> args) {
    return RunCommand(ArgvOf(command, std::move(args)));
  }
  static Ended Sweep(std::vector<std::string> args) { return Run("sweep", std::move(args)); }
  static fs::path root_;
};
fs::path SweepTest::root_;

TEST_F(SweepTest, TunesListsOfTensors) {
  std::ofstream(root_ / "work" / "sizes.txt") << "100\n3x5\n1\n";
  const Ended first = Sweep({"sgd", "--N=@sizes.txt"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("sgd N=100,15,1 f32, 2 ranks (threads)"));
  EXPECT_THAT(first.out, Not(HasSubstr("wrong answer")));
  const Ended second = SweepUntilHit([] { return Sweep({"sgd", "--N=100,3x5,1"}); });
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("cache hit: tuned "));
}

TEST_F(SweepTest, TunesThenHits) {
  const Ended first = Sweep({"sgd", "--N=2000", "--json=sgd.json"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("sgd N=2000 f32, 2 ranks (threads)"));
  EXPECT_THAT(first.out, HasSubstr("AR; C "));
  EXPECT_THAT(first.out, HasSubstr("baseline"));
  EXPECT_THAT(first.out, HasSubstr("stored as "));
  EXPECT_THAT(first.out, Not(HasSubstr("wrong answer")));
  EXPECT_THAT(ReadFile(root_ / "work" / "sgd.json"), HasSubstr("\"verdict\": \"measured\""));
  // Nothing is cut where it is not written to a terminal.
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(first.out, '\n')))
    EXPECT_FALSE(absl::EndsWith(line, "...")) << line;
  const Ended second = SweepUntilHit([] { return Sweep({"sgd", "--N=2000"}); });
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("cache hit: tuned "));
  EXPECT_THAT(second.out, HasSubstr("; 0 kernel files compiled"));
  EXPECT_THAT(second.out, HasSubstr("ran it: "));
  EXPECT_THAT(second.err, IsEmpty());

  const Ended list = Run("cache", {"list"});
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("sgd f32[2000]"));
  const Ended show = Run("cache", {"show", list.out.substr(list.out.find('\n') + 1, 12)});
  EXPECT_EQ(show.code, 0) << show.err;
  EXPECT_THAT(show.out, HasSubstr("program: program sgd"));
  EXPECT_THAT(show.out, HasSubstr("baseline"));
  EXPECT_THAT(show.out, ::testing::ContainsRegex("verified .* ago on machine .*, code .*: "));
  EXPECT_EQ(Run("cache", {"show", "fff"}).code, 2);
  EXPECT_EQ(Run("cache", {"dance"}).err,
            "coconet cache: want one of list, show, why, verify, retune, forget, quarantine, "
            "predictions, "
            "pin, unpin, stats, export, import, merge, diff, prune, have dance; see --help\n");
  EXPECT_EQ(Run("cache", {"list", "--cache=nowhere.db"}).code, 2);
  EXPECT_FALSE(fs::exists(root_ / "work" / "nowhere.db"));
}

TEST_F(SweepTest, RecordsAreExplainedAndChanged) {
  const std::vector<std::string> sweep = {"sgd", "--N=2100", "--ranks=1", "--all"};
  const Ended first = Sweep(sweep);
  ASSERT_EQ(first.code, 0) << first.err;
  const auto cache = [](std::vector<std::string> args) {
    const Ended ran = Run("cache", std::move(args));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  };
  const std::string list = cache({"list", "sgd", "--json"});
  EXPECT_THAT(list, HasSubstr("\"program\": \"sgd f32[2100]\""));
  const std::string key = list.substr(list.find("\"key\": \"") + 8, 16);  // the newest is first
  EXPECT_THAT(cache({"why", key}), ::testing::ContainsRegex("schedule +timed +protocol"));
  EXPECT_THAT(cache({"why", key, "--json"}), HasSubstr("\"verdict\": \"measured\""));
  EXPECT_THAT(cache({"verify", key}), HasSubstr("is verified again before it runs"));
  EXPECT_THAT(cache({"show", key}), HasSubstr("not verified yet"));
  EXPECT_THAT(SweepUntilHit([&] { return Sweep(sweep); }).out, HasSubstr("cache hit"));
  EXPECT_THAT(cache({"show", key}), HasSubstr("verified "));
  EXPECT_THAT(cache({"retune", key}), HasSubstr("is tuned again by the next job"));
  EXPECT_THAT(Sweep(sweep).out, HasSubstr("stored as"));
  EXPECT_THAT(SweepUntilHit([&] { return Sweep(sweep); }).out, HasSubstr("cache hit"));
  EXPECT_THAT(Sweep({"sgd", "--N=2100", "--ranks=1", "--retune"}).out, HasSubstr("stored as"));
  EXPECT_THAT(cache({"quarantine", key, "--lift"}), HasSubstr("no variant is left out"));
  EXPECT_THAT(cache({"forget", key}), HasSubstr("is forgotten"));
  EXPECT_EQ(Run("cache", {"show", key}).code, 2);
}

TEST_F(SweepTest, TunesAFile) {
  std::ofstream(root_ / "work" / "my.coco")
      << "coconet 1\nprogram my\ninput g : f32[N] local\nstate w : f32[N]\n"
         "update(w, w + all_reduce(max, g))\n";
  const Ended finished = Sweep({"my.coco", "--N=100", "--ranks=3", "--cache=:none:"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("my.coco N=100, 3 ranks (threads)"));
  EXPECT_THAT(finished.out, HasSubstr("not stored"));
}

TEST_F(SweepTest, BadInputIsOneLineAndExitCode2) {
  std::ofstream(root_ / "work" / "bad.coco") << "coconet 1\nprogram bad\ninput g : f32[8] "
                                                "local\ninput h : f32[9] local\noutput o = g + h\n";
  const struct {
    std::vector<std::string> args;
    std::string words;
  } cases[] = {
      {{}, "want a workload, or a .coco or .hlo file"},
      {{"adm"}, "did you mean 'adam'?"},
      {{"adam", "--N=many"}, "--N: want a size"},
      {{"adam", "--ranks=0"}, "--ranks: want 1 to 1024"},
      {{"adam", "--what=1"}, "--what: no flag, and no symbol"},
      {{"adam", "--dtype=i32"}, "i32"},
      {{"nothere.coco"}, "nothere.coco: cannot be read"},
      {{"bad.coco"}, "bad.coco: line 5"},
      {{"adam", "--N=100Gi"}, "do not fit"},
  };
  for (const auto& [args, words] : cases) {
    const Ended finished = Sweep(args);
    EXPECT_EQ(finished.code, 2) << words;
    EXPECT_THAT(finished.err, HasSubstr(words));
    EXPECT_THAT(finished.err, HasSubstr("sweep: "));
    EXPECT_THAT(finished.out, IsEmpty());
  }
}

TEST_F(SweepTest, VerifiesOnSimulatedGpus) {
  setenv("COCONET_SIMT_SEED", "many", 1);
  const Ended refused = Sweep({"sgd", "--N=100", "--backend=simt"});
  setenv("COCONET_SIMT_SEED", "3", 1);
  const Ended finished = Sweep({"sgd", "--N=100", "--backend=simt", "--only=fuse(RS, C, AG)"});
  unsetenv("COCONET_SIMT_SEED");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err,
            "coconet sweep: COCONET_SIMT_SEED: want a number from 0 on, have 'many'\n");
  if (absl::StrContains(finished.err, "not in this build")) GTEST_SKIP() << finished.err;
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("sgd N=100 f32, 2 ranks (threads) on simulated GPUs"));
  EXPECT_THAT(finished.out, HasSubstr("fuse(RS, C, AG)"));
}

TEST_F(SweepTest, HelpAndListAreForReading) {
  const Ended help = Sweep({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("--ranks=2"));
  EXPECT_THAT(Sweep({"--list"}).out, HasSubstr("adamw"));
}

TEST_F(SweepTest, AMissingCompilerIsSaid) {
  setenv("COCONET_CXX", "/no/such/compiler", 1);
  setenv("COCONET_CACHE_DIR", (root_ / "empty").c_str(), 1);
  const Ended finished = Sweep({"sgd", "--N=100"});
  unsetenv("COCONET_CXX");
  setenv("COCONET_CACHE_DIR", (root_ / "cache").c_str(), 1);
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err, HasSubstr("/no/such/compiler"));
  EXPECT_THAT(finished.err, HasSubstr("COCONET_CXX"));
}

TEST_F(SweepTest, AnUnwritableCacheIsAWarning) {
  std::ofstream(root_ / "work" / "file") << "no folder";
  const Ended finished = Sweep({"sgd", "--N=100", "--ranks=1", "--cache=file/tuning.db"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("sweep: warning: tuning cache"));
  EXPECT_THAT(finished.out, HasSubstr("not stored"));
}

/// The program of an optimizer step on so many parameters, each with tensors of its own: its
/// schedules and their kernels are many.
std::string ManyParameters(int count) {
  std::string text = "coconet 1\nprogram many\n";
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "input g", i, " : f32[N] local\nstate p", i,
                    " : f32[N] replicated\nstate m", i, " : f32[N] auto\n");
  }
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "update(m", i, ", 0.9 * m", i, " + all_reduce(sum, g", i, "))\n",
                    "update(p", i, ", p", i, " - 0.1 * m", i, ")\n");
  }
  return text;
}

TEST_F(SweepTest, EndsSoonAfterASignalAtAnyStage) {
  std::ofstream(root_ / "work" / "many.coco") << ManyParameters(60);
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed());
  for (const int stage : {1, 2, 3, 4, 5}) {
    setenv("COCONET_CACHE_DIR", (root_ / absl::StrCat("stage", stage)).c_str(), 1);
    // It would take some minutes.
    Command sweep(ArgvOf("sweep", {"many.coco", "--N=20000", "--budget=600"}));
    const absl::Duration delay = absl::Milliseconds((100 << stage) + random() % (100 << stage));
    absl::SleepFor(delay);
    sweep.Signal(stage % 2 == 0 ? SIGINT : SIGTERM);
    const absl::Time asked = absl::Now();
    const Ended finished = sweep.Wait();
    const std::string when = absl::StrCat("after ", absl::FormatDuration(delay));
    EXPECT_EQ(finished.code, 130) << when << ": " << finished.err;
    EXPECT_LT(absl::Now() - asked, absl::Seconds(15)) << when;
    const std::string& told = finished.out.empty() ? finished.err : finished.out;
    EXPECT_THAT(told, HasSubstr(finished.out.empty() ? "interrupted before anything was measured"
                                                     : "the next run goes on from there"))
        << when;
  }
  setenv("COCONET_CACHE_DIR", (root_ / "cache").c_str(), 1);
}

TEST_F(SweepTest, ABudgetOfZeroMeasuresThePlainSchedule) {
  std::ofstream(root_ / "work" / "many.coco") << ManyParameters(60);
  const absl::Time begin = absl::Now();
  const Ended finished = Sweep({"many.coco", "--N=1000", "--budget=0"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_LT(absl::Now() - begin, absl::Seconds(60)) << "all of it takes minutes";
  EXPECT_THAT(finished.out, HasSubstr("it is the baseline"));
  EXPECT_THAT(finished.out, HasSubstr("the next run goes on from there"));
}

}  // namespace
}  // namespace coconet
