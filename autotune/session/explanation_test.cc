#include "autotune/session/explanation.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Key(int cores, int n, absl::string_view program = "adam",
                absl::string_view ranks = "2") {
  return absl::StrCat("key: 2\ncompiler: gcc version 12; target x86_64; flags -O3\nranks: ", ranks,
                      "\ndevice from rank 0: AMD EPYC avx2; ", cores, " cores, 24 GiB\n",
                      "program: coconet 1\nprogram: program ", program, "\nprogram: input g : f32[",
                      n, "] local\nprogram: %1 = all_reduce(sum, g)\n");
}

TEST(Explanation, ANearRecordDiffersInFewFields) {
  const std::vector<KeyOfRecord> stored = {{"111111111111aa", Key(4, 2000)},
                                           {"222222222222bb", Key(4, 1000)},
                                           {"333333333333cc", Key(4, 1000, "adam", "4")}};
  EXPECT_EQ(
      NearestText(Key(2, 1000), stored),
      "the nearest, 222222222222, differs in device from rank 0 (4 cores there, 2 cores here)");
  EXPECT_EQ(NearestText(Key(4, 3000), stored),
            "the nearest, 111111111111, differs in sizes (\"input g : f32[2000] local\" there, "
            "\"input g : f32[3000] local\" here)");
}

TEST(Explanation, FieldsThatOnlyOneHasAreNamed) {
  const std::string with = absl::StrCat("memory limit: 5\n", Key(2, 1000));
  EXPECT_THAT(NearestText(Key(2, 1000), {{"1", with}}),
              HasSubstr("differs in memory limit (5 there, none here)"));
  EXPECT_THAT(NearestText(with, {{"1", Key(2, 1000)}}),
              HasSubstr("differs in memory limit (none there, 5 here)"));
}

TEST(Explanation, AnotherProgramIsNotNear) {
  EXPECT_EQ(NearestText(Key(2, 1000), {}), "there is no record at all");
  EXPECT_EQ(NearestText(Key(2, 1000), {{"1", Key(2, 1000, "lamb")}}),
            "none of 1 records is of a program adam");
}

TEST(Explanation, AProgramWithoutANameIsTheProgram) {
  const std::string key = "program: coconet 1\nprogram: input g : f32[8] local\n";
  EXPECT_EQ(ProgramText(key), "the program f32[8]");
  EXPECT_EQ(ProgramText(Key(2, 8)), "adam f32[8]");
  EXPECT_EQ(NearestText(key, {{"1", Key(2, 8)}}), "none of 1 records is of the program");
}

TuningRecord Record() {
  TuningRecord record;
  record.key_text = Key(2, 1000);
  record.best = {.trace = "b", .schedule = "fuse(RS, C, AG); slice m", .protocol = "two-shot"};
  record.best.verdict = Verdict::kMeasured;
  record.best.timing = {10, 10, 10, 20};
  record.baseline = {.trace = "a", .schedule = "AR; fuse(C)", .protocol = "library"};
  record.baseline.verdict = Verdict::kMeasured;
  record.baseline.timing = {25, 25, 25, 20};
  record.variants = 3;
  return record;
}

TEST(Explanation, SaysWhatTheBestFusesAndGained) {
  const TuningRecord record = Record();
  VariantResult wrong = record.best;
  wrong.schedule = "fuse(AR, C)";
  wrong.timing = {};
  wrong.verdict = Verdict::kWrongAnswer;
  wrong.reason = "p[3] is 2\nand more";
  const std::string text = ExplainRecord(record, {record.best, record.baseline, wrong}, "thread");
  EXPECT_THAT(text, HasSubstr("adam f32[1000] runs fuse(RS, C, AG); slice m (two-shot, "));
  EXPECT_THAT(text, HasSubstr("one kernel does RS, C, AG as it goes"));
  EXPECT_THAT(text, HasSubstr("10.0 us a step; the plain schedule, AR; fuse(C), takes 25.0 us: it "
                              "gains 15.0 us a step, 2.50x"));
  EXPECT_THAT(text, ::testing::ContainsRegex("AR; fuse\\(C\\) +thread +25.0 us  2.50x as long"));
  EXPECT_THAT(text, ::testing::ContainsRegex("fuse\\(AR, C\\) .*wrong answer: p\\[3\\] is 2\n"));
}

TEST(Explanation, SaysNothingOfTimesThatAreNotThere) {
  TuningRecord record = Record();
  record.best = record.baseline;
  EXPECT_THAT(ExplainRecord(record, {}, "shm"), HasSubstr("25.0 us a step; it is the plain"));
  record.best.timing = {};
  const std::string text = ExplainRecord(record, {}, "shm");
  EXPECT_THAT(text, HasSubstr("it was not timed"));
  EXPECT_THAT(text, HasSubstr("no kernel fuses communication with computation"));
  EXPECT_THAT(text, Not(HasSubstr("other schedules")));
}

}  // namespace
}  // namespace coconet
