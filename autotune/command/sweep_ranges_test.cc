#include "autotune/command/sweep_ranges.h"

#include <random>

#include "autotune/command/sizes.h"
#include "autotune/command/sweep_flags.h"
#include "autotune/command/sweep_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

/// Parses a command line and loads its program.
absl::StatusOr<SweepFlags> Load(const std::vector<std::string>& args,
                                SweepCommand command = SweepCommand::kSweep) {
  absl::StatusOr<SweepFlags> flags = ParseSweepFlags(args, "/home/me", command);
  if (!flags.ok()) return flags;
  if (const absl::Status loaded = LoadSweepProgram(*flags).status(); !loaded.ok()) return loaded;
  return flags;
}

std::string Message(const std::vector<std::string>& args,
                    SweepCommand command = SweepCommand::kSweep) {
  const absl::StatusOr<SweepFlags> flags = Load(args, command);
  EXPECT_EQ(flags.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(flags.status().message().find('\n'), std::string::npos);
  return std::string(flags.status().message());
}

TEST(SweepRanges, HaveBothEnds) {
  const SweepFlags flags = Load({"adam", "--N=1Ki..64Mi"}).value();
  EXPECT_EQ(flags.ranges, (SizeRanges{{"N", {1024, 64 << 20}}}));
  EXPECT_EQ(RangesText(flags.ranges), "N=1Ki..64Mi");
  EXPECT_TRUE(flags.sizes.empty());
  EXPECT_EQ(Load({"adam", "--N=1.5Ki..1.5Ki"})->ranges, (SizeRanges{{"N", {1536, 1536}}}));
  EXPECT_TRUE(Load({"adam", "--N=4Ki"})->ranges.empty());
}

TEST(SweepRanges, TheLastOfSeveralSizesOfASymbolCounts) {
  EXPECT_EQ(Load({"adam", "--N=4", "--N=1..2"})->ranges, (SizeRanges{{"N", {1, 2}}}));
  EXPECT_TRUE(Load({"adam", "--N=1..2", "--N=4"})->ranges.empty());
}

TEST(SweepRanges, RefuseWhatIsNone) {
  for (const char* bad :
       {"..", "1..", "..4", "4..2", "0..4", "-1..4", "1...4", "1..2..3", "1..x", "1,2..4", "1..4,8",
        "1x2..4", "1..99999999999999999999", "1..9e9", "1Ki..1", "1..1000000G"})
    EXPECT_THAT(Message({"adam", absl::StrCat("--N=", bad)}), HasSubstr("--N: want a size")) << bad;
  EXPECT_THAT(Message({"adam", "--M=1..4"}), HasSubstr("--M: no flag, and no symbol"));
  EXPECT_THAT(Message({"adam", "--N=1..4", "--schedule=RS"}), HasSubstr("--schedule"));
  EXPECT_THAT(Message({"adam", "--N=1..4"}, SweepCommand::kPlan), HasSubstr("one size"));
  EXPECT_THAT(Message({"gpt_step", "--layers=1..4"}), HasSubstr("one size"));
}

TEST(SweepRanges, AnyTextIsARangeASizeOrRefused) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::string letters = "0123456789.KMGikx,-+@ e";
  int ranges = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = "1Ki..64Mi";
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
      const size_t at = random() % (text.size() + 1);
      if (random() % 2 == 0)
        text.insert(at, 1, letters[random() % letters.size()]);
      else
        text.erase(at, 1 + random() % 2);
    }
    const absl::StatusOr<SizeRange> range = ParseSizeRange(text);
    if (!range.ok()) continue;
    ++ranges;
    EXPECT_LE(1, range->lo) << text;
    EXPECT_LE(range->lo, range->hi) << text;
    EXPECT_LE(range->hi, kGreatestSize) << text;
    EXPECT_EQ(ParseSizeRange(absl::StrCat(range->lo, "..", range->hi)).value(), *range) << text;
  }
  EXPECT_GT(ranges, 100);
}

TEST(ShortSize, IsShortAndParsesBack) {
  EXPECT_EQ(ShortSize(1000), "1000");
  EXPECT_EQ(ShortSize(1536), "1536");
  EXPECT_EQ(ShortSize(16384), "16Ki");
  EXPECT_EQ(ShortSize(3 << 20), "3Mi");
  EXPECT_EQ(ShortSize(int64_t{5} << 30), "5Gi");
}

TEST(BucketTable, HasALinePerBucket) {
  std::vector<SizeBucket> buckets(2);
  buckets[0].box = {{"N", {1024, 6143}}};
  buckets[0].schedule = "fuse(RS, C, AG)";
  buckets[0].first = {1024, 2, 6};
  buckets[0].last = {4096, 4, 8};
  buckets[1].box = {{"N", {6144, 65536}}};
  buckets[1].schedule = "RS; fuse(C, AG)";
  buckets[1].first = {16384, 10, 15};
  buckets[1].last = {65536, 40, 50};
  buckets[1].bracket = 1.19;
  EXPECT_EQ(BucketTable(buckets, "N"),
            "sizes        schedule             first tuned  speedup       last tuned  speedup  "
            "crossover\n"
            "N=1Ki..6143  fuse(RS, C, AG)   2.00 us at 1Ki    3.00x   4.00 us at 4Ki    2.00x\n"
            "N=6Ki..64Ki  RS; fuse(C, AG)  10.0 us at 16Ki    1.50x  40.0 us at 64Ki    1.25x  "
            "N=6Ki, within 1.19x\n");
}

}  // namespace
}  // namespace coconet
