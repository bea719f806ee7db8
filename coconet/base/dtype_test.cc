#include "coconet/base/dtype.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

double RoundTrip(DType type, double value) {
  alignas(8) char bytes[8] = {};
  StoreElement(type, bytes, 0, value);
  return LoadElement(type, bytes, 0);
}

uint16_t Bits(DType type, double value) {
  uint16_t bits = 0;
  StoreElement(type, &bits, 0, value);
  return bits;
}

TEST(DType, NamesParseBack) {
  for (DType type : kAllDTypes) EXPECT_EQ(ParseDType(Name(type)), type);
  EXPECT_EQ(ParseDType("f8"), std::nullopt);
  EXPECT_EQ(ParseDType(""), std::nullopt);
  for (ReduceKind kind : kAllReduceKinds) EXPECT_EQ(ParseReduceKind(Name(kind)), kind);
  EXPECT_EQ(ParseReduceKind("mean"), std::nullopt);
}

TEST(DType, SizesAndKinds) {
  std::vector<size_t> sizes;
  std::vector<bool> floats;
  for (DType type : kAllDTypes) {
    sizes.push_back(SizeOf(type));
    floats.push_back(IsFloat(type));
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{4, 2, 2, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1}));
  std::vector<bool> expected(4, true);
  expected.resize(sizes.size());
  EXPECT_EQ(floats, expected);
}

// Every 16-bit pattern is the rounding of its own value. The midpoint to the next pattern is a tie
// that goes to the even one; values just beside it go to the nearer.
void CheckAllPatterns(DType type, uint16_t infinity) {
  for (uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const uint16_t bits = static_cast<uint16_t>(pattern);
    const uint16_t magnitude = bits & 0x7fff;
    const double value = LoadElement(type, &bits, 0);
    if (magnitude > infinity) {
      ASSERT_TRUE(std::isnan(value)) << pattern;
      ASSERT_TRUE(std::isnan(RoundTrip(type, value))) << pattern;
      continue;
    }
    ASSERT_EQ(Bits(type, value), bits) << pattern;
    if (magnitude == infinity) {
      ASSERT_TRUE(std::isinf(value)) << pattern;
      continue;
    }
    // Infinity's place on the grid is one step beyond the largest number.
    const uint16_t next = bits + 1;
    const double step =
        magnitude + 1 == infinity
            ? value - LoadElement(type, std::vector<uint16_t>{uint16_t(bits - 1)}.data(), 0)
            : LoadElement(type, &next, 0) - value;
    const double tie = value + step / 2;
    ASSERT_EQ(Bits(type, tie), bits % 2 == 0 ? bits : next) << pattern;
    ASSERT_EQ(Bits(type, std::nextafter(tie, value)), bits) << pattern;
    ASSERT_EQ(Bits(type, std::nextafter(tie, std::signbit(value) ? -kInf : kInf)), next) << pattern;
  }
}

TEST(DType, RoundsToEveryF16) { CheckAllPatterns(DType::kF16, 0x7c00); }
TEST(DType, RoundsToEveryBF16) { CheckAllPatterns(DType::kBF16, 0x7f80); }

TEST(DType, F32AndDoubleRoundAlikeWhereTheF32IsExact) {
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (uint32_t low : {0x0000u, 0x0001u, 0x1000u, 0x1fffu, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const float value = std::bit_cast<float>(high << 16 | low);
      if (std::isnan(value)) continue;
      ASSERT_EQ(F16FromF32(value), Bits(DType::kF16, value)) << value;
      ASSERT_EQ(BF16FromF32(value), Bits(DType::kBF16, value)) << value;
    }
  }
}

TEST(DType, NarrowFloatsOverflowToInfinityAndKeepNaN) {
  EXPECT_EQ(RoundTrip(DType::kF16, 65519.999), 65504);
  EXPECT_EQ(RoundTrip(DType::kF16, 65520), kInf);
  EXPECT_EQ(RoundTrip(DType::kF16, -1e300), -kInf);
  EXPECT_EQ(RoundTrip(DType::kBF16, 3.4e38), kInf);
  EXPECT_EQ(RoundTrip(DType::kF32, 1e300), kInf);
  for (DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    EXPECT_TRUE(std::isnan(RoundTrip(type, kNaN)));
    EXPECT_TRUE(std::signbit(RoundTrip(type, -0.0)));
  }
}

TEST(DType, IntegersTruncateAndSaturate) {
  EXPECT_EQ(RoundTrip(DType::kI32, -2.9), -2);
  EXPECT_EQ(RoundTrip(DType::kI32, 3e9), 2147483647);
  EXPECT_EQ(RoundTrip(DType::kI32, -3e9), -2147483648.0);
  EXPECT_EQ(RoundTrip(DType::kU8, -1), 0);
  EXPECT_EQ(RoundTrip(DType::kU8, 255.9), 255);
  EXPECT_EQ(RoundTrip(DType::kU8, 256), 255);
  EXPECT_EQ(RoundTrip(DType::kI8, 128), 127);
  EXPECT_EQ(RoundTrip(DType::kI8, -128.5), -128);
  EXPECT_EQ(RoundTrip(DType::kI16, -1e9), -32768);
  EXPECT_EQ(RoundTrip(DType::kU16, 65535.5), 65535);
  EXPECT_EQ(RoundTrip(DType::kU32, 4294967295), 4294967295);
  EXPECT_EQ(RoundTrip(DType::kU32, -0.5), 0);
  EXPECT_EQ(RoundTrip(DType::kI32, kNaN), 0);
  EXPECT_EQ(RoundTrip(DType::kBool, 0.5), 1);
  EXPECT_EQ(RoundTrip(DType::kBool, 0), 0);
  int64_t value = 0;
  StoreElement(DType::kI64, &value, 0, 1e30);
  EXPECT_EQ(value, std::numeric_limits<int64_t>::max());
  StoreElement(DType::kI64, &value, 0, -kInf);
  EXPECT_EQ(value, std::numeric_limits<int64_t>::min());
  uint64_t natural = 0;
  StoreElement(DType::kU64, &natural, 0, 1e30);
  EXPECT_EQ(natural, std::numeric_limits<uint64_t>::max());
}

TEST(DType, RangesAreThoseOfTheirBits) {
  for (DType type : kAllDTypes) {
    if (!IsInteger(type)) continue;
    const int bits = static_cast<int>(SizeOf(type)) * 8;
    EXPECT_EQ(MinFinite(type), IsSigned(type) ? -std::ldexp(1, bits - 1) : 0) << Name(type);
    const double beyond = std::ldexp(1, IsSigned(type) ? bits - 1 : bits);
    EXPECT_LT(MaxFinite(type), beyond) << Name(type);
    EXPECT_EQ(std::nextafter(MaxFinite(type), beyond) >= beyond, bits == 64) << Name(type);
    EXPECT_EQ(RoundTrip(type, MaxFinite(type)), MaxFinite(type)) << Name(type);
  }
}

TEST(DType, LimitsAreTheTypesOwn) {
  for (DType type : kAllDTypes) {
    EXPECT_EQ(RoundTrip(type, MaxFinite(type)), MaxFinite(type)) << Name(type);
    if (!IsFloat(type)) {
      EXPECT_EQ(UnitRoundoff(type), 0);
      EXPECT_EQ(MinSubnormal(type), 0);
      continue;
    }
    EXPECT_EQ(RoundTrip(type, 2 * MaxFinite(type)), kInf) << Name(type);
    EXPECT_EQ(RoundTrip(type, MinSubnormal(type)), MinSubnormal(type)) << Name(type);
    EXPECT_EQ(RoundTrip(type, MinSubnormal(type) / 2), 0) << Name(type);
    EXPECT_EQ(RoundTrip(type, 1 + UnitRoundoff(type)), 1) << Name(type);
    EXPECT_EQ(RoundTrip(type, 1 + 2 * UnitRoundoff(type)), 1 + 2 * UnitRoundoff(type))
        << Name(type);
  }
}

TEST(DType, ElementsAreIndexed) {
  std::vector<uint16_t> data(3, 0);
  StoreElement(DType::kF16, data.data(), 1, 1.5);
  EXPECT_EQ(LoadElement(DType::kF16, data.data(), 0), 0);
  EXPECT_EQ(LoadElement(DType::kF16, data.data(), 1), 1.5);
  EXPECT_EQ(LoadElement(DType::kF16, data.data(), 2), 0);
}

}  // namespace
}  // namespace coconet
