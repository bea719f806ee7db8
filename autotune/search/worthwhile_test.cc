#include "autotune/search/worthwhile.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derive.h"
#include "coconet/schedule/describe.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

struct Words {
  std::vector<std::string> derived, kept;
};

Words WordsOf(const std::string& shape, int ranks) {
  const absl::StatusOr<Graph> program = Parse(absl::StrCat(
      "coconet 1\ninput x : f32", shape, " local\noutput y = exp(abs(all_reduce(sum, x)))\n"));
  EXPECT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<std::vector<Schedule>> schedules = Derive(*program);
  EXPECT_TRUE(schedules.ok());
  Words words;
  for (const Schedule& s : *schedules) words.derived.push_back(Describe(s));
  for (const Schedule& s : Worthwhile(*schedules, ranks)) words.kept.push_back(Describe(s));
  return words;
}

TEST(Worthwhile, NoSlicesThatLeaveHalfOfTheRanksIdle) {
  const Words words = WordsOf("[1, 100, 64]", 2);
  EXPECT_THAT(words.derived, Contains(HasSubstr("RS[0]")));
  EXPECT_THAT(words.kept, AllOf(Each(Not(HasSubstr("[0]"))), Contains(HasSubstr("RS[1]")),
                                Contains(HasSubstr("RS[2]"))));
  EXPECT_THAT(WordsOf("[2, 100, 64]", 4).kept, Each(Not(HasSubstr("[0]"))));
  EXPECT_THAT(WordsOf("[3, 100, 64]", 4).kept, Contains(HasSubstr("RS[0]")));
}

TEST(Worthwhile, FlatSlicesThatAreThoseOfADimensionOnce) {
  EXPECT_THAT(WordsOf("[1, 128, 64]", 2).kept, Each(Not(HasSubstr("flat"))));
  EXPECT_THAT(WordsOf("[1, 3, 5]", 2).kept, Contains(HasSubstr("RS[flat]")))
      << "8 and 7 elements, not 10 and 5";
}

TEST(Worthwhile, VectorsAndWhatTheProgramSlicesStay) {
  const Words vectors = WordsOf("[1]", 8);
  EXPECT_EQ(vectors.kept, vectors.derived);
  const absl::StatusOr<Graph> own =
      Parse("coconet 1\ninput x : f32[1, 8] sliced(0)\noutput y = abs(all_gather(exp(x)))\n");
  ASSERT_TRUE(own.ok()) << own.status();
  const absl::StatusOr<std::vector<Schedule>> schedules = Derive(*own);
  ASSERT_TRUE(schedules.ok());
  EXPECT_EQ(Worthwhile(*schedules, 4).size(), schedules->size());
}

TEST(Worthwhile, TheProgramAsWrittenIsFirst) {
  const Words words = WordsOf("[1, 100, 64]", 2);
  EXPECT_EQ(words.kept[0], words.derived[0]);
}

}  // namespace
}  // namespace coconet
