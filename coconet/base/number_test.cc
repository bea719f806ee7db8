#include "coconet/base/number.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr uint64_t kTop = uint64_t{1} << 63;

TEST(Number, HoldsEveryIntegerOf64Bits) {
  for (const int64_t integer :
       {INT64_MIN, int64_t{-1}, int64_t{0}, (int64_t{1} << 53) + 1, INT64_MAX}) {
    EXPECT_TRUE(Number(integer).is_integer());
    EXPECT_EQ(Number(integer).integer(), absl::int128(integer));
    EXPECT_EQ(Number(integer).word(), integer);
  }
  EXPECT_EQ(Number(UINT64_MAX).integer(), absl::int128(UINT64_MAX));
  EXPECT_EQ(Number(UINT64_MAX).word(), -1);
  EXPECT_EQ(Number::Of(absl::int128(kTop)), Number(kTop));
  EXPECT_EQ(Number::Of(-absl::int128(kTop)), Number(INT64_MIN));
  EXPECT_TRUE(Number::Holds(UINT64_MAX));
  EXPECT_TRUE(Number::Holds(INT64_MIN));
  EXPECT_FALSE(Number::Holds(absl::int128(UINT64_MAX) + 1));
  EXPECT_FALSE(Number::Holds(absl::int128(INT64_MIN) - 1));
}

TEST(Number, IsEqualToWhatIsTheSameNumber) {
  EXPECT_EQ(Number(3), Number(3.0));
  EXPECT_EQ(Number(kTop), Number(0x1p63));
  EXPECT_FALSE(Number(INT64_MAX) == Number(0x1p63));
  EXPECT_FALSE(Number((int64_t{1} << 53) + 1) == Number(0x1p53));
  EXPECT_FALSE(Number(UINT64_MAX) == Number(-1));
  EXPECT_FALSE(Number(UINT64_MAX) == Number(0x1p64));
  EXPECT_FALSE(Number(0) == Number(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(Number(std::nan("")) == Number(std::nan("")));
}

TEST(Number, IsWrittenInFull) {
  EXPECT_EQ(NumberText(UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(NumberText(INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(NumberText(100000), "100000");
  EXPECT_EQ(NumberText(0.9), "0.9");
  EXPECT_EQ(NumberText(1e-8), "1e-08");
  EXPECT_EQ(NumberText(1 - 0.9), "0.09999999999999998");
  EXPECT_EQ(NumberText(-0.0), "-0");
  EXPECT_EQ(NumberText(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Number, IsShortInMessages) {
  EXPECT_EQ(ShortText(1 / 3.0), "0.333333333");
  EXPECT_EQ(ShortText(1e10), "1e+10");
  EXPECT_EQ(ShortText(INT64_MAX), "9223372036854775807");
}

}  // namespace
}  // namespace coconet
