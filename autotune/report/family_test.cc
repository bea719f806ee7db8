#include "autotune/report/family.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "autotune/report/key_fields.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

std::string KeyText(const std::string& program, const std::string& extents,
                    const std::string& device = "one") {
  return absl::StrCat("ranks: 2\ndevice from rank 0: ", device, "\nprogram: program ", program,
                      "\nprogram: input g : f32[", extents, "] local\nprogram: %1 = count(f32, [",
                      extents, "])\n");
}

VariantResult Variant(const std::string& schedule, double us, double noise = 0) {
  VariantResult v{.trace = schedule, .schedule = schedule, .verdict = Verdict::kMeasured};
  v.timing = {us, us * (1 - noise), us * (1 + noise), 20};
  return v;
}

ReportRecord RecordOf(const std::string& key_text, std::vector<VariantResult> variants,
                      int64_t bytes = 0) {
  ReportRecord of;
  of.record.key_text = key_text;
  of.record.key = key_text;
  of.record.best = *std::min_element(variants.begin(), variants.end(),
                                     [](const VariantResult& a, const VariantResult& b) {
                                       return a.timing.median_us < b.timing.median_us;
                                     });
  of.record.baseline = variants[0];
  of.record.necessary_bytes = bytes;
  of.variants = std::move(variants);
  return of;
}

TEST(FamilyKey, IsEqualForOtherExtentsOnly) {
  EXPECT_EQ(FamilyKey(KeyText("adam", "16")), FamilyKey(KeyText("adam", "16384")));
  EXPECT_EQ(FamilyKey(KeyText("adam", "2, 3")), FamilyKey(KeyText("adam", "20, 30")));
  EXPECT_NE(FamilyKey(KeyText("adam", "2, 3")), FamilyKey(KeyText("adam", "6")));
  EXPECT_NE(FamilyKey(KeyText("adam", "16")), FamilyKey(KeyText("sgd", "16")));
  EXPECT_NE(FamilyKey(KeyText("adam", "16", "one")), FamilyKey(KeyText("adam", "16", "other")));
  EXPECT_NE(FamilyKey("a: [1]\n"), FamilyKey("a: [2]\n")) << "extents of programs only";
}

TEST(FamiliesOf, GroupsSizesAndLeavesSingleOnesOut) {
  const std::vector<ReportRecord> records = {
      RecordOf(KeyText("adam", "100"), {Variant("a", 5)}, 1000),
      RecordOf(KeyText("adam", "10"), {Variant("a", 1)}, 100),
      RecordOf(KeyText("adam", "100"), {Variant("a", 7)}, 1000),  // older than the first
      RecordOf(KeyText("sgd", "10"), {Variant("a", 1)}),
      RecordOf(KeyText("adam", "10", "other"), {Variant("a", 1)})};
  const std::vector<SizeFamily> families = FamiliesOf(records);
  ASSERT_EQ(families.size(), 1u);
  const SizeFamily& family = families[0];
  EXPECT_EQ(family.title, "adam, 2 ranks");
  ASSERT_EQ(family.sizes.size(), 2u);
  EXPECT_EQ(family.sizes[0].size, 10);
  EXPECT_EQ(family.sizes[1].size, 100);
  EXPECT_EQ(family.sizes[1].by_schedule.at("a").timing.median_us, 5);
  // 200 bytes per microsecond at the greater size are the most: the limit of both.
  EXPECT_EQ(family.best_bytes_per_us, 200);
  EXPECT_EQ(family.sizes[0].limit_us, 0.5);
  EXPECT_EQ(family.sizes[1].limit_us, 5);
}

TEST(FamiliesOf, CountsAllElementsWhereSeveralExtentsDiffer) {
  const std::vector<ReportRecord> records = {RecordOf(KeyText("mlp", "2, 3"), {Variant("a", 1)}),
                                             RecordOf(KeyText("mlp", "20, 30"), {Variant("a", 1)})};
  const std::vector<SizeFamily> families = FamiliesOf(records);
  ASSERT_EQ(families.size(), 1u);
  EXPECT_EQ(families[0].sizes[0].size, 6);
  EXPECT_EQ(families[0].sizes[1].size, 600);
  EXPECT_EQ(families[0].size_is, "elements of all inputs and states");
}

FamilySize SizeOf(double size, const std::vector<VariantResult>& variants) {
  FamilySize of{.size = size};
  for (const VariantResult& v : variants) of.by_schedule[v.schedule] = {v.timing, ""};
  return of;
}

TEST(CrossoversOf, LieWhereTheLinesMeet) {
  // a is constant, b grows with the size: they meet in the middle of 1 and 100, which is 10.
  const std::vector<Crossover> found =
      CrossoversOf({SizeOf(1, {Variant("a", 10), Variant("b", 1)}),
                    SizeOf(100, {Variant("a", 10), Variant("b", 100)})});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].from, "b");
  EXPECT_EQ(found[0].to, "a");
  EXPECT_NEAR(found[0].size, 10, 1e-9);
  EXPECT_NEAR(found[0].us, 10, 1e-9);
  EXPECT_TRUE(found[0].is_certain);
}

TEST(CrossoversOf, FollowTheFastestThroughAThirdSchedule) {
  // In logarithms: b rises from 0 to 4, a falls from 4 to 0, c stays at 1.
  const std::vector<Crossover> found =
      CrossoversOf({SizeOf(1, {Variant("a", 1e4), Variant("b", 1), Variant("c", 10)}),
                    SizeOf(1e4, {Variant("a", 1), Variant("b", 1e4), Variant("c", 10)})});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].from + found[0].to, "bc");
  EXPECT_NEAR(found[0].size, 10, 1e-6);
  EXPECT_EQ(found[1].from + found[1].to, "ca");
  EXPECT_NEAR(found[1].size, 1e3, 1e-6);
}

TEST(CrossoversOf, SayWhereNoLineIsKnownAndWhatNoiseHides) {
  const std::vector<Crossover> unknown =
      CrossoversOf({SizeOf(1, {Variant("a", 1)}), SizeOf(2, {Variant("b", 1)})});
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_EQ(unknown[0].size, 0);
  EXPECT_EQ(unknown[0].below, 1);
  EXPECT_EQ(unknown[0].above, 2);
  EXPECT_FALSE(unknown[0].is_certain);
  const std::vector<Crossover> noisy =
      CrossoversOf({SizeOf(1, {Variant("a", 10, 0.1), Variant("b", 10.5, 0.1)}),
                    SizeOf(2, {Variant("a", 20, 0.01), Variant("b", 10, 0.01)})});
  ASSERT_EQ(noisy.size(), 1u);
  EXPECT_FALSE(noisy[0].is_certain);
}

TEST(CrossoversOf, AreNoneWhereOneIsTheFastestOrAsFast) {
  EXPECT_TRUE(CrossoversOf({SizeOf(1, {Variant("a", 1), Variant("b", 2)}),
                            SizeOf(2, {Variant("a", 2), Variant("b", 3)})})
                  .empty());
  EXPECT_TRUE(CrossoversOf({SizeOf(1, {Variant("a", 2), Variant("b", 1)}),
                            SizeOf(2, {Variant("a", 2), Variant("b", 2)})})
                  .empty());
  EXPECT_TRUE(CrossoversOf({}).empty());
}

TEST(SpeedUpOf, HasTheIntervalOfBoth) {
  TuningRecord r;
  r.best = Variant("a", 10, 0.1);
  r.baseline = Variant("b", 30, 0.1);
  const SpeedUp speedup = SpeedUpOf(r);
  EXPECT_NEAR(speedup.ratio, 3, 1e-9);
  EXPECT_NEAR(speedup.low, 27.0 / 11, 1e-9);
  EXPECT_NEAR(speedup.high, 33.0 / 9, 1e-9);
  EXPECT_EQ(Text(speedup).substr(0, 25), "between 2.45x and 3.67x (");
  r.key_text = "ranks: 2\ndevice from rank 0: simulated GPU\n";
  EXPECT_EQ(Text(SpeedUpOf(r)), "");
  r = {};
  EXPECT_EQ(SpeedUpOf(r).rounds, 0) << "nothing was timed";
}

}  // namespace
}  // namespace coconet
