#include "bench/probe/probe_lines.h"

#include "bench/probe/probe_group.h"
#include "bench/probe/probe_program.h"
#include "coconet/workloads/training_steps.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet::bench {
namespace {

using ::testing::HasSubstr;

/// The only line of a text.
ProbeLine OneLine(absl::string_view text) {
  const absl::StatusOr<std::vector<ProbeLine>> lines = ParseProbeLines(text);
  EXPECT_TRUE(lines.ok()) << lines.status();
  EXPECT_EQ(lines->size(), 1u);
  return lines->at(0);
}
std::string ErrorOf(absl::string_view text) {
  const ProbeLine line = OneLine(text);
  EXPECT_EQ(line.error.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(line.error.message());
}
std::string RefusalOf(absl::string_view text) {
  const absl::Status status = LoadProbeProgram(OneLine(text), "/nowhere").status();
  EXPECT_FALSE(status.ok()) << text;
  return std::string(status.message());
}

TEST(ProbeLines, HaveFourFields) {
  const ProbeLine line =
      OneLine("adam|N=16Mi\tranks=2 | RS; fuse(C); AG p |  generated   vec=4 # why\n");
  EXPECT_TRUE(line.error.ok()) << line.error;
  EXPECT_EQ(line.number, 1);
  EXPECT_EQ(line.program, "adam");
  EXPECT_EQ(line.sizes, "N=16Mi ranks=2");
  EXPECT_EQ(line.schedule, "RS; fuse(C); AG p");
  EXPECT_EQ(line.config, "generated vec=4");
}

TEST(ProbeLines, LeftOutFieldsAndStarsSayNothing) {
  for (const char* text : {"adam", "adam |", "adam | * | * | *", "adam | | |"}) {
    const ProbeLine line = OneLine(text);
    EXPECT_TRUE(line.error.ok()) << line.error;
    EXPECT_EQ(line.sizes + line.schedule + line.config, "") << text;
  }
}

TEST(ProbeLines, SkipCommentsAndEmptyLinesAndCountThem) {
  const auto lines = ParseProbeLines("# a comment\r\n\n  adam  # x | y\r\n\t\nsgd | N=@a#b\n");
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ((*lines)[0].number, 3);
  EXPECT_EQ((*lines)[0].text, "adam");
  EXPECT_EQ((*lines)[1].sizes, "N=@a#b");
}

TEST(ProbeLines, BarsInBracesArePartOfASchedule) {
  const ProbeLine line = OneLine("adam | N=4 | apart {split(%1) | library vec=16} {x | y} | *");
  EXPECT_TRUE(line.error.ok()) << line.error;
  EXPECT_EQ(line.schedule, "apart {split(%1) | library vec=16} {x | y}");
}

TEST(ProbeLines, WrongOnesSayWhereAndOthersAreRead) {
  EXPECT_THAT(ErrorOf("a | b | c | d | e"),
              HasSubstr("line 1: want 'program | sizes | schedule | config', have 5 fields"));
  EXPECT_THAT(ErrorOf("| N=4"), HasSubstr("line 1: program: want a workload"));
  EXPECT_THAT(ErrorOf("a | {"), HasSubstr("want '}' after '{'"));
  EXPECT_THAT(ErrorOf("a | }"), HasSubstr("want '{' before '}'"));
  EXPECT_THAT(ErrorOf(absl::string_view("a\0b", 3)), HasSubstr("a control character (0)"));
  EXPECT_THAT(ErrorOf(std::string(1 << 17, 'a')), HasSubstr("want at most 65536 characters"));
  const auto lines = ParseProbeLines("\x7f\nadam\n");
  ASSERT_TRUE(lines.ok());
  EXPECT_FALSE((*lines)[0].error.ok());
  EXPECT_TRUE((*lines)[1].error.ok());
}

TEST(ProbeLines, TextsWithoutAnyAreRefused) {
  for (const char* text : {"", "\n\n", "# only a comment"}) {
    const absl::Status status = ParseProbeLines(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("no line to run"));
  }
}

TEST(ProbeProgram, TakesSizesAsSweepSpellsThem) {
  const absl::StatusOr<ProbeProgram> program =
      LoadProbeProgram(OneLine("adam | N=1Ki dtype=bf16 ranks=4 stages=2 order=rank"), "/");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->ranks, 4);
  EXPECT_EQ(program->stages, 2);
  EXPECT_EQ(program->sum_order, SumOrder::kRank);
  EXPECT_EQ(LoadProbeProgram(OneLine("adam"), "/")->ranks, 2);
}

TEST(ProbeProgram, SaysWhatIsWrongWithIt) {
  EXPECT_THAT(RefusalOf("adan"), HasSubstr("program: unknown workload 'adan'"));
  EXPECT_THAT(RefusalOf("my.coco"), HasSubstr("program: /nowhere/my.coco: cannot be read"));
  EXPECT_THAT(RefusalOf("adam | N"), HasSubstr("sizes: want NAME=VALUE, have 'N'"));
  EXPECT_THAT(RefusalOf("adam | N=4 N=5"), HasSubstr("sizes: want N once"));
  EXPECT_THAT(RefusalOf("adam | M=4"), HasSubstr("sizes: --M: no flag, and no symbol"));
  EXPECT_THAT(RefusalOf("adam | ranks=many"), HasSubstr("sizes: --ranks: want 1 to 1024"));
  EXPECT_THAT(RefusalOf("adam | budget=5"),
              HasSubstr("sizes: 'budget' is no size, but a flag of sweep"));
  EXPECT_THAT(RefusalOf("adam | ranks=3 stages=2"), HasSubstr("want ranks a multiple of stages"));
}

TEST(AssumedGpus, HaveTheSpaceOfTheirArchitecture) {
  const absl::StatusOr<ProbeProgram> program = LoadProbeProgram(OneLine("adam | ranks=2"), "/");
  const absl::StatusOr<AssumedWorld> one = WorldOn({.arch = "sm_90a", .gpus = 1}, *program);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->space.multiprocessors, 66);
  EXPECT_TRUE(one->space.bulk);
  EXPECT_FALSE(one->space.library);
  EXPECT_EQ(one->target.ranks, 2);
  const absl::StatusOr<AssumedWorld> two = WorldOn({.arch = "sm_80", .gpus = 2}, *program);
  EXPECT_EQ(two->space.multiprocessors, 108);
  EXPECT_FALSE(two->space.bulk);
  EXPECT_TRUE(two->space.library);
  for (const char* bad : {"", "90", "sm_", "sm_x"})
    EXPECT_TRUE(absl::IsInvalidArgument(WorldOn({.arch = bad}, *program).status())) << bad;
}

TEST(ProbeBaselines, HaveNoNamesOfPrograms) {
  for (const std::string& name : BaselineNames()) {
    EXPECT_TRUE(absl::IsNotFound(MakeWorkload(name).status())) << name;
    for (const TrainingStepInfo& step : TrainingSteps()) EXPECT_NE(name, step.name);
  }
  EXPECT_EQ(FindBaseline("adam"), nullptr);
}

TEST(ProbeBaselines, SayWhatIsWrong) {
  const auto refusal = [](absl::string_view text) {
    const ProbeLine line = OneLine(text);
    const absl::Status status = FindBaseline(line.program)->parse(line).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal("copy | byte=4"),
              HasSubstr("sizes: want bytes, ranks, have 'byte' (did you mean 'bytes'?)"));
  EXPECT_THAT(refusal("copy | | AR"), HasSubstr("schedule: want none for copy, have \"AR\""));
  EXPECT_THAT(refusal("copy | | | vec=4"), HasSubstr("config: want none for copy"));
  EXPECT_THAT(refusal("product | M=4 K=4"), HasSubstr("sizes: N: want 1 to 1048576, have ''"));
  EXPECT_THAT(refusal("product | M=4 K=4 N=4 dtype=i32"),
              HasSubstr("dtype: want f32, f16 or bf16"));
  EXPECT_THAT(refusal("product | M=4 K=4 N=4 | | algorithm=99"),
              HasSubstr("config: algorithm: want 0 to 15"));
  for (const ProbeBaseline* baseline : {FindBaseline("copy"), FindBaseline("product")})
    EXPECT_TRUE(baseline->parse(OneLine(baseline->form)).ok()) << baseline->form;
}

}  // namespace
}  // namespace coconet::bench
