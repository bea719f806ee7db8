#include "autotune/command/sweep_plan.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "autotune/command/sweep_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<std::string> Planned(std::vector<std::string> args) {
  args.insert(args.end(), {"--plan-only", "--budget=0.1"});
  absl::StatusOr<SweepFlags> flags = ParseSweepFlags(args, testing::TempDir());
  if (!flags.ok()) return flags.status();
  const absl::StatusOr<Graph> program = LoadSweepProgram(*flags);
  if (!program.ok()) return program.status();
  return PlanText(*flags, *program, [](absl::string_view) {}, [] { return false; });
}

/// A file of a text, in a folder of tests.
std::string FileOf(const std::string& name, const std::string& text) {
  const std::string file = absl::StrCat(testing::TempDir(), "/", getpid(), "_", name);
  std::ofstream(file) << text;
  return file;
}

TEST(PlanText, OfWorkloadsAndLists) {
  for (const char* sizes : {"--N=1000", "--N=3,5,1000"}) {
    const absl::StatusOr<std::string> text = Planned({"adam", sizes, "--ranks=4"});
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_THAT(*text, HasSubstr("adam, 4 ranks, planned for h100 and 100 Gbit/s a rank; nothing"));
    EXPECT_THAT(*text, HasSubstr("as written, combined to 30 MiB"));
    EXPECT_THAT(*text, HasSubstr("communication |"));
    EXPECT_THAT(*text, Not(HasSubstr("imported")));
  }
}

TEST(PlanText, OfModulesThatDoNotRun) {
  const std::string file = FileOf("step.hlo", R"(HloModule step, num_partitions=64
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[64,100] parameter(0)
  s = f32[64,100] sort(x), dimensions={1}, to_apply=add
  ROOT r = f32[64,100] all-reduce(s), replica_groups=[32,2]<=[64], to_apply=add, channel_id=1,
      use_global_device_ids=true
}
)");
  const std::string trace = absl::StrCat(file, ".trace");
  const absl::StatusOr<std::string> text =
      Planned({file, "--device=a100", "--link=25", absl::StrCat("--trace=", trace)});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("64 ranks, planned for a100 and 25 Gbit/s a rank"));
  EXPECT_THAT(*text, HasSubstr("opaque: 1 x sort; in groups of ranks: 1 x all-reduce of 2"));
  std::ifstream in(trace);
  const std::string json((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(json, HasSubstr("traceEvents"));
  std::filesystem::remove(trace);
  EXPECT_THAT(std::string(Planned({file, "--ranks=2"}).status().message()),
              HasSubstr("the module was lowered for 64 devices"));
  std::filesystem::remove(file);
}

constexpr char kSum[] = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[15] parameter(0)
)";

TEST(PlanText, OfModulesThatLeaveTheirRanksOpen) {
  const std::string file = FileOf("all.hlo", absl::StrCat(kSum, R"(
  ROOT r = f32[15] all-reduce(x), replica_groups={}, to_apply=add
}
)"));
  // As many as there are: a collective in each of the three plans.
  for (const char* ranks : {"--ranks=2", "--ranks=5", "--ranks=4 --stages=2"}) {
    std::vector<std::string> args = absl::StrSplit(ranks, ' ');
    args.push_back(file);
    const absl::StatusOr<std::string> text = Planned(args);
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_THAT(*text, HasSubstr(ranks[8] == '5' ? "5 ranks" : "2 ranks"));
    EXPECT_THAT(*text, ContainsRegex("found +[^ ]+ [^ ]+ +[0-9.]+ +[0-9]+ +1 "));
  }
  EXPECT_THAT(*Planned({file}), HasSubstr("2 ranks"));
  EXPECT_THAT(*Planned({file, "--ranks=1"}), ContainsRegex("found .* +0 "));
  EXPECT_THAT(std::string(Planned({file, "--ranks=3", "--stages=2"}).status().message()),
              HasSubstr("want stages of equally many of 3 ranks, have 2"));
  std::filesystem::remove(file);
  const std::string gathers = FileOf("gather.hlo", absl::StrCat(kSum, R"(
  ROOT r = f32[60] all-gather(x), replica_groups={}, dimensions={0}
}
)"));
  EXPECT_THAT(*Planned({gathers}), HasSubstr("4 ranks"));
  EXPECT_THAT(std::string(Planned({gathers, "--ranks=3"}).status().message()),
              HasSubstr("the module was lowered for 4 devices (line 8: %r = f32[60] all-gather), "
                        "have 3 ranks"));
  std::filesystem::remove(gathers);
}

TEST(PlanText, CountsConstantsWithoutNumbers) {
  const std::string file = FileOf("elided.hlo", absl::StrCat(kSum, R"(
  c = f32[15] constant({...})
  m = f32[15] multiply(x, c)
  ROOT r = f32[15] all-reduce(m), replica_groups={}, to_apply=add
}
)"));
  const absl::StatusOr<std::string> text = Planned({file});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("3 instructions of HLO; constants whose numbers the text leaves "
                               "out: 1\n"));
  std::filesystem::remove(file);
}

TEST(PlanText, RefusesAFileThatCannotBeWrittenBeforeItPlans) {
  SweepFlags flags = *ParseSweepFlags({"adam", "--plan-only", "--trace=/nowhere/t.json"}, "/");
  const Graph program = *LoadSweepProgram(flags);
  const absl::Status status =
      PlanText(
          flags, program, [](absl::string_view line) { ADD_FAILURE() << "planned: " << line; },
          [] { return false; })
          .status();
  EXPECT_EQ(status, absl::FailedPreconditionError("--trace: cannot write /nowhere/t.json"));
}

TEST(PlanText, RefusesWhatIsNoDeviceOrLink) {
  EXPECT_THAT(std::string(Planned({"adam", "--device=tpu"}).status().message()),
              HasSubstr("want one of the devices v100"));
  EXPECT_THAT(std::string(Planned({"adam", "--link=0"}).status().message()),
              HasSubstr("--link: want Gbit/s, have '0'"));
  EXPECT_THAT(std::string(Planned({"adam", "--ranks=3", "--stages=2"}).status().message()),
              HasSubstr("want stages of equally many of 3 ranks, have 2"));
}

}  // namespace
}  // namespace coconet
