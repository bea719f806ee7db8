// What befalls tuning caches, through the sweep command: several jobs at once, jobs that are
// killed, files that are damaged, newer, or not ours; and sizes at the ends of what there is.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/command.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CachesTest : public testing::Test {
 protected:
  CachesTest()
      : folder_(fs::path(testing::TempDir()) /
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
  }

  std::string cache() const { return folder_ / "tuning.db"; }
  std::vector<std::string> SweepOf(std::vector<std::string> args) const {
    args.insert(args.begin(), "autotune/sweep");
    args.push_back(absl::StrCat("--cache=", cache()));
    const auto sets_ranks = [](const std::string& arg) {
      return absl::StartsWith(arg, "--ranks=");
    };
    // One waits for no other, so a busy machine does not slow it.
    if (absl::c_none_of(args, sets_ranks)) args.push_back("--ranks=1");
    return args;
  }
  Ended Sweep(const std::vector<std::string>& args,
              std::map<std::string, std::string> environment = {}) const {
    return RunCommand(SweepOf(args), Environment(std::move(environment)));
  }
  /// Kernels are compiled once for all tests.
  static std::map<std::string, std::string> Environment(
      std::map<std::string, std::string> more = {}) {
    more.insert({"COCONET_CACHE_DIR", absl::StrCat(testing::TempDir(), "/kernels")});
    return more;
  }

  const fs::path folder_;
};

TEST_F(CachesTest, TwoJobsTuneIntoOneFileAtOnce) {
  Command one(SweepOf({"sgd", "--N=2001"}), Environment()),
      other(SweepOf({"momentum", "--N=2001"}), Environment()),
      same(SweepOf({"sgd", "--N=2001"}), Environment());
  for (Command* job : {&one, &other, &same}) {
    const Ended ended = job->Wait();
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_THAT(ended.err, Not(HasSubstr("warning")));
  }
  for (const char* workload : {"sgd", "momentum"}) {
    const Ended again = SweepUntilHit([&] { return Sweep({workload, "--N=2001"}); });
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_THAT(again.out, HasSubstr("cache hit"));
  }
}

TEST_F(CachesTest, AJobThatIsKilledLeavesAGoodFile) {
  for (double after_s : {0.0, 0.3, 0.8}) {
    Command job(SweepOf({"sgd", "--N=5001"}), Environment());
    ASSERT_TRUE(Eventually([&] {
      return absl::StrContains(job.err(), "variants") || fs::exists(cache());
    })) << job.err();
    Sleep(after_s);
    job.Signal(SIGKILL);
    job.Wait();
  }
  const Ended next = Sweep({"sgd", "--N=5001"});
  EXPECT_EQ(next.code, 0) << next.err;
  EXPECT_THAT(next.err, Not(HasSubstr("damaged")));
  EXPECT_THAT(SweepUntilHit([&] { return Sweep({"sgd", "--N=5001"}); }).out,
              HasSubstr("cache hit"));
}

TEST_F(CachesTest, ADamagedFileIsSetAsideAndRebuilt) {
  ASSERT_EQ(Sweep({"sgd", "--N=100"}).code, 0);
  std::fstream(cache(), std::ios::in | std::ios::out | std::ios::binary)
      .write(std::string(5000, 'x').data(), 5000);
  const Ended rebuilt = Sweep({"sgd", "--N=100"});
  EXPECT_EQ(rebuilt.code, 0) << rebuilt.err;
  EXPECT_THAT(rebuilt.err, HasSubstr("corrupt"));
  EXPECT_THAT(rebuilt.out, HasSubstr("stored as"));
  EXPECT_THAT(SweepUntilHit([&] { return Sweep({"sgd", "--N=100"}); }).out, HasSubstr("cache hit"));
  int set_aside = 0;
  for (const auto& entry : fs::directory_iterator(folder_))
    set_aside += absl::StrContains(entry.path().string(), ".corrupt-");
  EXPECT_GE(set_aside, 1);
}

TEST_F(CachesTest, ANewerFileIsLeftAlone) {
  ASSERT_EQ(Sweep({"sgd", "--N=100"}).code, 0);
  constexpr int kUserVersion = 60;  // place of SQLite's big-endian user_version in the file
  std::fstream(cache(), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(kUserVersion)
      .write("\0\0\1\0", 4);
  const std::string before = ReadFile(cache());
  const Ended ended = Sweep({"sgd", "--N=100"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("newer"));
  EXPECT_THAT(ended.out, HasSubstr("not stored"));
  EXPECT_EQ(ReadFile(cache()), before);
}

TEST_F(CachesTest, AWarmCacheNeedsNoCompiler) {
  ASSERT_EQ(Sweep({"sgd", "--N=100"}).code, 0);
  const std::map<std::string, std::string> no_compiler = {{"PATH", "/nonexistent"},
                                                          {"COCONET_ASSERT_CACHED", "1"}};
  const Ended hit = SweepUntilHit([&] { return Sweep({"sgd", "--N=100"}, no_compiler); });
  EXPECT_EQ(hit.code, 0) << hit.err;
  EXPECT_THAT(hit.out, HasSubstr("cache hit"));
  const Ended miss =
      Sweep({"adamw", "--dtype=bf16", "--N=100"}, {{"PATH", "/nonexistent"}, {"COCONET_CXX", ""}});
  EXPECT_EQ(miss.code, 2) << miss.err;
  EXPECT_THAT(miss.err, HasSubstr("install g++"));
}

TEST_F(CachesTest, CtrlCKeepsWhatWasMeasured) {
  ASSERT_EQ(Sweep({"sgd", "--N=100"}).code, 0);  // so that the next one need not compile
  const std::vector<std::string> args = {"sgd", "--N=24Mi"};
  Command job(SweepOf(args), Environment());
  ASSERT_TRUE(Eventually([&] {
    const std::string progress = job.err();
    return absl::StrContains(progress, "tried ") || absl::StrContains(progress, "measured ");
  })) << job.err();
  job.Signal(SIGINT);
  const Ended ended = job.Wait();
  EXPECT_EQ(ended.code, 130) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("the next run goes on from there"));
  EXPECT_THAT(ended.out, HasSubstr("stored as "));
}

struct OddSize {
  const char* n;
  const char* ranks;
};
class OddSizesTest : public CachesTest, public testing::WithParamInterface<OddSize> {};
INSTANTIATE_TEST_SUITE_P(, OddSizesTest,
                         testing::Values(OddSize{"0", "2"}, OddSize{"1", "1"}, OddSize{"1", "3"},
                                         OddSize{"7", "3"}, OddSize{"1001", "2"}),
                         [](const auto& info) {
                           return absl::StrCat("N", info.param.n, "On", info.param.ranks);
                         });

TEST_P(OddSizesTest, AreTunedLikeOthers) {
  const std::string file = folder_ / "sum.coco";  // which has few schedules
  std::ofstream(file) << "coconet 1\nprogram sum\ninput g : f32[N] local\nstate w : f32[N]\n"
                         "update(w, w + all_reduce(sum, g))\n";
  const std::vector<std::string> args = {file, absl::StrCat("--N=", GetParam().n),
                                         absl::StrCat("--ranks=", GetParam().ranks)};
  const Ended first = Sweep(args);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("stored as"));
  EXPECT_THAT(first.out, Not(HasSubstr("wrong answer")));
  EXPECT_THAT(first.out, Not(HasSubstr("error")));
  EXPECT_THAT(SweepUntilHit([&] { return Sweep(args); }).out, HasSubstr("cache hit"));
}

struct BadProgram {
  const char* name;
  const char* text;
  const char* words;
};
class BadProgramsTest : public CachesTest, public testing::WithParamInterface<BadProgram> {};
INSTANTIATE_TEST_SUITE_P(
    , BadProgramsTest,
    testing::Values(
        BadProgram{"Empty", "", "line 1"},
        BadProgram{"NoVersion", "program p\noutput o = 1\n", "line 1"},
        BadProgram{"NewerVersion", "coconet 99\nprogram p\n", "line 1"},
        BadProgram{"UnknownOperation",
                   "coconet 1\nprogram p\ninput g : f32[8] local\noutput o = all_reduse(sum, g)\n",
                   "line 4"},
        BadProgram{"TwoSlicings",
                   "coconet 1\nprogram p\ninput a : f32[8, 8] sliced(0)\ninput b : f32[8, 8] "
                   "sliced(1)\noutput o = a + b\n",
                   "line 5"},
        BadProgram{"ShapesDoNotFit",
                   "coconet 1\nprogram p\ninput a : f32[8] local\ninput b : f32[9] local\noutput o "
                   "= a + b\n",
                   "line 5"},
        BadProgram{"NegativeExtent",
                   "coconet 1\nprogram p\ninput a : f32[-8] local\noutput o = a\n", "line 3"},
        BadProgram{
            "HugeExtent",
            "coconet 1\nprogram p\ninput a : f32[99999999999999999999] local\noutput o = a\n",
            "line 3"},
        BadProgram{"NotText",
                   "\x7f"
                   "ELF\x02\x01\x01\xff\xfe",
                   "line 1"},
        BadProgram{"UnboundSymbol",
                   "coconet 1\nprogram p\ninput a : f32[B] local\noutput o = all_reduce(sum, a)\n",
                   "--B"}),
    [](const auto& info) { return info.param.name; });

TEST_P(BadProgramsTest, GetOneLineAndExitCode2) {
  const std::string file = folder_ / "bad.coco";
  std::ofstream(file) << GetParam().text;
  const Ended ended = Sweep({file});
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_THAT(ended.out, IsEmpty());
  EXPECT_THAT(ended.err, HasSubstr(GetParam().words));
  EXPECT_THAT(ended.err, testing::MatchesRegex("coconet sweep: [^\n]*\n")) << "one line";
  EXPECT_FALSE(fs::exists(cache()));
}

}  // namespace
}  // namespace coconet
