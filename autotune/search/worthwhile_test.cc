#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/search/variants.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Not;

struct Schedules {
  std::vector<Schedule> derived, kept;
};

Schedules SchedulesOf(const std::string& shape, int ranks) {
  const absl::StatusOr<Graph> program = Parse(absl::StrCat(
      "coconet 1\ninput x : f32", shape, " local\noutput y = exp(abs(all_reduce(sum, x)))\n"));
  EXPECT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<std::vector<Schedule>> derived = Derive(*program);
  EXPECT_TRUE(derived.ok());
  return {*derived, Worthwhile(*derived, ranks)};
}

/// Has a ReduceScatter over the dimension.
MATCHER_P(Slices, dim, "") {
  for (const Node& node : arg.graph().nodes) {
    const auto* scatter = std::get_if<ReduceScatter>(&node.op);
    if (scatter != nullptr && scatter->to.dim == dim) return true;
  }
  return false;
}

std::vector<std::string> TextsOf(const std::vector<Schedule>& schedules) {
  std::vector<std::string> texts;
  for (const Schedule& s : schedules) texts.push_back(Print(s));
  return texts;
}

TEST(Worthwhile, NoSlicesThatLeaveHalfOfTheRanksIdle) {
  const Schedules schedules = SchedulesOf("[1, 100, 64]", 2);
  EXPECT_THAT(schedules.derived, Contains(Slices(0)));
  EXPECT_THAT(schedules.kept,
              AllOf(Each(Not(Slices(0))), Contains(Slices(1)), Contains(Slices(2))));
  EXPECT_THAT(SchedulesOf("[2, 100, 64]", 4).kept, Each(Not(Slices(0))));
  EXPECT_THAT(SchedulesOf("[3, 100, 64]", 4).kept, Contains(Slices(0)));
}

TEST(Worthwhile, FlatSlicesThatAreThoseOfADimensionOnce) {
  const Schedules schedules = SchedulesOf("[1, 128, 64]", 2);
  EXPECT_THAT(schedules.kept, AllOf(Each(Not(Slices(Layout::kFlat))), Contains(Slices(1))));
  EXPECT_THAT(SchedulesOf("[1, 3, 5]", 2).kept, Contains(Slices(Layout::kFlat)))
      << "8 and 7 elements, not 10 and 5";
}

TEST(Worthwhile, WhatDiffersInADimensionOnlyIsThere) {
  // Without those over dimension 1, flat slices are the only ones of their kind.
  const Schedules schedules = SchedulesOf("[1, 128, 64]", 2);
  std::vector<Schedule> others;
  for (const Schedule& s : schedules.derived) {
    if (!testing::Value(s, Slices(1))) others.push_back(s);
  }
  EXPECT_THAT(Worthwhile(others, 2), Contains(Slices(Layout::kFlat)));
}

TEST(Worthwhile, VectorsAndWhatTheProgramSlicesStay) {
  const Schedules vectors = SchedulesOf("[1]", 8);
  EXPECT_EQ(TextsOf(vectors.kept), TextsOf(vectors.derived));
  const absl::StatusOr<Graph> own =
      Parse("coconet 1\ninput x : f32[1, 8] sliced(0)\noutput y = abs(all_gather(exp(x)))\n");
  ASSERT_TRUE(own.ok()) << own.status();
  const absl::StatusOr<std::vector<Schedule>> schedules = Derive(*own);
  ASSERT_TRUE(schedules.ok());
  EXPECT_EQ(Worthwhile(*schedules, 4).size(), schedules->size());
}

TEST(Worthwhile, TheProgramAsWrittenIsFirst) {
  const Schedules schedules = SchedulesOf("[1, 100, 64]", 2);
  EXPECT_EQ(Print(schedules.kept[0]), Print(schedules.derived[0]));
}

}  // namespace
}  // namespace coconet
