#include "autotune/command/sweep_report.h"

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

VariantResult Variant(absl::string_view schedule, double us, Verdict verdict,
                      absl::string_view reason) {
  VariantResult v;
  v.trace = std::string(schedule);
  v.schedule = std::string(schedule);
  v.protocol = "library";
  v.verdict = verdict;
  v.reason = std::string(reason);
  v.bytes = 1000;
  if (us > 0) v.timing = {us, us * 0.99, us * 1.01, 20};
  return v;
}

TuningRecord Record(const VariantResult& best, const VariantResult& baseline) {
  TuningRecord r;
  r.best = best;
  r.baseline = baseline;
  r.necessary_bytes = 400'000'000;
  r.variants = 3;
  return r;
}

TEST(TimeText, HasThreeDigits) {
  EXPECT_EQ(TimeText(0.0042), "4.20 ns");
  EXPECT_EQ(TimeText(0.431), "431 ns");
  EXPECT_EQ(TimeText(12.94), "12.9 us");
  EXPECT_EQ(TimeText(13100), "13.1 ms");
  EXPECT_EQ(TimeText(2.5e6), "2.50 s");
}

TEST(AgeText, PicksAUnit) {
  EXPECT_EQ(AgeText(5), "5 s ago");
  EXPECT_EQ(AgeText(600), "10 min ago");
  EXPECT_EQ(AgeText(3 * 3600), "3 h ago");
  EXPECT_EQ(AgeText(10 * 86400), "10 days ago");
  EXPECT_EQ(AgeText(-5), "in the future");
}

TEST(VariantTable, SortsByTimeAndSaysWhy) {
  const VariantResult baseline = Variant("AR; C", 50000, Verdict::kMeasured, "");
  VariantResult best = Variant("fuse(RS, C, AG)", 12500, Verdict::kMeasured, "");
  best.protocol = "two-shot";
  best.config.streaming = Streaming::kShared;
  const VariantResult wrong =
      Variant("RS; C; AG", 0, Verdict::kWrongAnswer, "rank 1: p[3]: want 1, have 2");
  const VariantResult dropped =
      Variant("RS; AG; C", 150000, Verdict::kPruned, "12.0x as long as the best");
  EXPECT_EQ(
      VariantTable(Record(best, baseline), {baseline, wrong, dropped, best}, "mpi"),
      "schedule         protocol  vec  chunk  blk  stream   median    +-  GB/s  speedup\n"
      "fuse(RS, C, AG)  two-shot   16   4096    1  shared  12.5 ms  1.0%  32.0    4.00x  best\n"
      "AR; C            mpi        16   4096    1          50.0 ms  1.0%   8.0    1.00x  baseline\n"
      "RS; AG; C        mpi        16   4096    1           150 ms  1.0%   2.7    0.33x  12.0x as "
      "long as the best\n"
      "RS; C; AG        mpi        16   4096    1                                        wrong "
      "answer: rank 1: "
      "p[3]: want 1, have 2\n");
}

TEST(ScheduleTable, HasALineForEachScheduleAndForBestAndBaseline) {
  const VariantResult baseline = Variant("AR; C", 50000, Verdict::kMeasured, "");
  const VariantResult best = Variant("fuse(RS, C, AG)", 12500, Verdict::kMeasured, "");
  VariantResult other = Variant("AR; C", 45000, Verdict::kPruned, "3.6x as long as the best");
  other.config.chunk = 64;
  const VariantResult never = Variant("RS; C; AG", 0, Verdict::kNotMeasured, "interrupted");
  EXPECT_EQ(ScheduleTable(Record(best, baseline), {baseline, never, other, best}, "mpi"),
            "schedule          timed  protocol   median    +-  GB/s  speedup\n"
            "fuse(RS, C, AG)  1 of 1  mpi       12.5 ms  1.0%  32.0    4.00x  best\n"
            "AR; C            2 of 2  mpi       45.0 ms  1.0%   8.9    1.11x  3.6x as long as the "
            "best\n"
            "AR; C            2 of 2  mpi       50.0 ms  1.0%   8.0    1.00x  baseline\n"
            "RS; C; AG        0 of 1  mpi                                     not measured: "
            "interrupted\n");
}

TEST(ScheduleTable, HasNoSpeedupOnSimulatedGpus) {
  const VariantResult best = Variant("AR; C", 50000, Verdict::kMeasured, "");
  TuningRecord record = Record(best, best);
  record.key_text = "ranks: 2\ndevice from rank 0: simulated GPU; 1 cores\n";
  EXPECT_EQ(ScheduleTable(record, {best}, "mpi").find("1.00x"), std::string::npos);
  EXPECT_EQ(BestText(record), "AR; C; times of simulated GPUs say nothing of real ones");
}

TEST(VariantTable, CutsNothingWithoutAWidth) {
  const std::string reason = "not tried: neither promising nor drawn, " + std::string(300, 'r');
  const VariantResult best = Variant(std::string(300, 's'), 50, Verdict::kMeasured, "");
  const VariantResult other = Variant("RS; C; AG", 0, Verdict::kNotMeasured, reason);
  for (const auto& table : {VariantTable, ScheduleTable}) {
    const std::string text = table(Record(best, best), {best, other}, "mpi", TableColumn::kWhole);
    EXPECT_THAT(text, HasSubstr(best.schedule));
    EXPECT_THAT(text, HasSubstr(reason));
  }
}

TEST(VariantTable, KeepsToTheWidthOfATerminal) {
  const VariantResult best = Variant("AR; C", 50, Verdict::kMeasured, "");
  const VariantResult failed =
      Variant("RS; C; AG", 0, Verdict::kCompileError, std::string(300, 'x') + "\nsecond line");
  for (absl::string_view line :
       absl::StrSplit(VariantTable(Record(best, best), {best, failed}, "mpi", 170), '\n')) {
    EXPECT_LE(line.size(), 170u);
    EXPECT_EQ(line.find("second"), absl::string_view::npos);
  }
  // Numbers are never cut off.
  const VariantResult wide =
      Variant(std::string(200, 's'), 50, Verdict::kMeasured, std::string(200, 'r'));
  const std::string table = VariantTable(Record(best, best), {wide}, "mpi", 170);
  for (absl::string_view line : absl::StrSplit(table, '\n')) EXPECT_LE(line.size(), 170u);
  EXPECT_THAT(table, HasSubstr("sss...  mpi        16   4096    1"));
  EXPECT_THAT(table, HasSubstr("1.00x"));
}

TEST(VariantJson, EscapesAndKeepsEverything) {
  const VariantResult best = Variant("AR; C", 50, Verdict::kMeasured, "");
  const VariantResult failed = Variant("RS", 0, Verdict::kCompileError, "say \"hi\"\n\\x");
  const std::string json = VariantJson(Record(best, best), {best, failed}, "adam N=4", 2, false);
  EXPECT_THAT(json, HasSubstr(R"("reason": "say \"hi\"\u000a\\x")"));
  EXPECT_THAT(json, HasSubstr(R"("median_us": 50, "low_us": 49.5, "high_us": 50.5, "samples": 20, )"
                              R"("gb_per_s": 8000, "speedup": 1})"));
  EXPECT_THAT(json, HasSubstr(R"({"program": "adam N=4", "ranks": 2, "from_cache": false)"));
}

}  // namespace
}  // namespace coconet
