#include "autotune/store/families/size_ranges.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

TEST(SizeRanges, ArePrintedAndParsedBack) {
  const SizeRanges ranges = {{"K", {8, 8}}, {"N", {1024, 65536}}};
  EXPECT_EQ(Text(ranges), "K=8 N=1024..65536");
  EXPECT_EQ(ParseSizeRanges(Text(ranges)).value(), ranges);
}

TEST(SizeRanges, RefuseWhatIsNone) {
  EXPECT_THAT(Validate({{"N", {5, 4}}}).message(), HasSubstr("N: want sizes from 1 to"));
  for (const char* text : {"", "N", "N=", "N=0", "N=4..2", "N=1..", "=3", "N=1 N=2", "N=1..2..3",
                           "N=99999999999999999999", "N=-1..4", "N=1  M=2"})
    EXPECT_EQ(ParseSizeRanges(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
}

TEST(SizeRanges, AnyTextParsesToValidRangesOrIsRefused) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string letters = "NK=.. 0123456789-+";
  for (int i = 0; i < 20000; ++i) {
    std::string text = "K=8 N=1024..65536";
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % (text.size() + 1);
      if (random() % 2 == 0)
        text.insert(at, 1, letters[random() % letters.size()]);
      else
        text.erase(at, 1 + random() % 3);
    }
    const absl::StatusOr<SizeRanges> ranges = ParseSizeRanges(text);
    if (!ranges.ok()) continue;
    EXPECT_TRUE(Validate(*ranges).ok()) << text;
    EXPECT_EQ(ParseSizeRanges(Text(*ranges)).value(), *ranges) << text;
  }
}

}  // namespace
}  // namespace coconet
