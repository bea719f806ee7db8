#include "coconet/base/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

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
  EXPECT_EQ(sizes, (std::vector<size_t>{4, 2, 2, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 1, 1}));
  std::vector<bool> expected(sizes.size());
  for (size_t i : {0, 1, 2, 3, 13, 14}) expected[i] = true;
  EXPECT_EQ(floats, expected);
  std::vector<absl::string_view> narrow, of_8_bits, without_infinity;
  for (DType type : kAllDTypes) {
    if (IsNarrowFloat(type)) narrow.push_back(Name(type));
    if (IsFloat8(type)) of_8_bits.push_back(Name(type));
    if (IsFloat(type) && !HasInfinity(type)) without_infinity.push_back(Name(type));
  }
  EXPECT_THAT(narrow, testing::ElementsAre("f16", "bf16", "f8e4m3", "f8e5m2"));
  EXPECT_THAT(of_8_bits, testing::ElementsAre("f8e4m3", "f8e5m2"));
  EXPECT_THAT(without_infinity, testing::ElementsAre("f8e4m3"));
}

// Every 16-bit pattern is the rounding of its own value. The midpoint to the next pattern is a tie
// that goes to the even one; values just beside it go to the nearer.
void CheckAllPatterns(DType type, uint16_t infinity) {
  for (uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const uint16_t bits = static_cast<uint16_t>(pattern);
    const uint16_t magnitude = bits & 0x7fff;
    const double value = LoadElement(type, &bits, 0).real();
    if (magnitude > infinity) {
      ASSERT_TRUE(std::isnan(value)) << pattern;
      ASSERT_TRUE(Stored(type, value).is_nan()) << pattern;
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
            ? value - LoadElement(type, std::vector<uint16_t>{uint16_t(bits - 1)}.data(), 0).real()
            : LoadElement(type, &next, 0).real() - value;
    const double tie = value + step / 2;
    ASSERT_EQ(Bits(type, tie), bits % 2 == 0 ? bits : next) << pattern;
    ASSERT_EQ(Bits(type, std::nextafter(tie, value)), bits) << pattern;
    ASSERT_EQ(Bits(type, std::nextafter(tie, std::signbit(value) ? -kInf : kInf)), next) << pattern;
  }
}

TEST(DType, RoundsToEveryF16) { CheckAllPatterns(DType::kF16, 0x7c00); }
TEST(DType, RoundsToEveryBF16) { CheckAllPatterns(DType::kBF16, 0x7f80); }

/// The value of an 8-bit float by its definition; `bias` belongs to the exponent.
double ValueOfBits(int bits, int mantissa_bits, int bias) {
  const int magnitude = bits & 0x7f, fraction = magnitude & ((1 << mantissa_bits) - 1);
  const int exponent = magnitude >> mantissa_bits;
  const double significand = fraction + (exponent == 0 ? 0 : 1 << mantissa_bits);
  const double value = std::ldexp(significand, std::max(exponent, 1) - bias - mantissa_bits);
  return bits >= 0x80 ? -value : value;
}

uint8_t Bits8(DType type, const Number& value) {
  uint8_t bits = 0;
  StoreElement(type, &bits, 0, value);
  return bits;
}

// As CheckAllPatterns, of 8 bits. `greatest`: the bits of the greatest finite number.
void CheckAllBytes(DType type, int mantissa_bits, int bias, int greatest, int overflow) {
  for (int byte = 0; byte < 0x100; ++byte) {
    const auto bits = static_cast<uint8_t>(byte);
    const int magnitude = byte & 0x7f, sign = byte & 0x80;
    const double value = LoadElement(type, &bits, 0).real();
    if (magnitude > greatest) {
      const bool infinite = HasInfinity(type) && magnitude == greatest + 1;
      ASSERT_TRUE(infinite ? std::isinf(value) : std::isnan(value)) << byte;
      ASSERT_TRUE(infinite ? Bits8(type, value) == bits : Stored(type, value).is_nan()) << byte;
      continue;
    }
    ASSERT_EQ(value, ValueOfBits(byte, mantissa_bits, bias)) << byte;
    ASSERT_EQ(std::signbit(value), sign != 0) << byte;
    ASSERT_EQ(Bits8(type, value), bits) << byte;
    ASSERT_EQ(Bits8(type, value), sign | (Bits8(type, std::fabs(value)))) << byte;
    const int next = magnitude == greatest ? sign | overflow : byte + 1;
    const double tie = (value + ValueOfBits(byte + 1, mantissa_bits, bias)) / 2;
    ASSERT_EQ(Bits8(type, tie), byte % 2 == 0 ? byte : next) << byte;
    ASSERT_EQ(Bits8(type, std::nextafter(tie, value)), byte) << byte;
    ASSERT_EQ(Bits8(type, std::nextafter(tie, sign != 0 ? -kInf : kInf)), next) << byte;
  }
}

TEST(DType, RoundsToEveryF8E4M3) { CheckAllBytes(DType::kF8E4M3, 3, 7, 0x7e, 0x7f); }
TEST(DType, RoundsToEveryF8E5M2) { CheckAllBytes(DType::kF8E5M2, 2, 15, 0x7b, 0x7c); }

TEST(DType, F8E4M3HasNaNForWhatItDoesNotHold) {
  EXPECT_EQ(Stored(DType::kF8E4M3, 464), 448);
  EXPECT_EQ(Stored(DType::kF8E4M3, -464), -448);
  for (const double value : {464.0001, -464.0001, 480.0, 1e300, kInf, -kInf, kNaN})
    EXPECT_TRUE(Stored(DType::kF8E4M3, value).is_nan()) << value;
  EXPECT_TRUE(Stored(DType::kF8E4M3, INT64_MIN).is_nan());
  EXPECT_EQ(Stored(DType::kF8E5M2, 61439.999), 57344);
  EXPECT_EQ(Stored(DType::kF8E5M2, 61440), kInf);
  EXPECT_EQ(Stored(DType::kF8E5M2, INT64_MIN), -kInf);
  EXPECT_EQ(Greatest(DType::kF8E4M3), 448);
  EXPECT_EQ(Least(DType::kF8E4M3), -448);
  EXPECT_EQ(Greatest(DType::kF8E5M2), kInf);
  EXPECT_FALSE(CheckHolds(DType::kF8E4M3, kInf).ok());
  EXPECT_FALSE(CheckHolds(DType::kF8E4M3, 465).ok());
  EXPECT_TRUE(CheckHolds(DType::kF8E4M3, kNaN).ok());
  EXPECT_TRUE(CheckHolds(DType::kF8E4M3, 464).ok());
  EXPECT_TRUE(CheckHolds(DType::kF8E5M2, kInf).ok());
  EXPECT_FALSE(CheckHolds(DType::kF8E5M2, 61440).ok());
}

// By way of f32 or f16 these would be rounded twice: to the middle of two numbers, and then to the
// even one.
TEST(DType, EightBitFloatsAreRoundedOnce) {
  constexpr double kStep = 0x1p-40;
  EXPECT_EQ(Stored(DType::kF8E4M3, 1 + 0x1p-4), 1);
  EXPECT_EQ(Stored(DType::kF8E4M3, 1 + 0x1p-4 + kStep), 1 + 0x1p-3);
  EXPECT_EQ(Stored(DType::kF8E4M3, 1 + 3 * 0x1p-4 - kStep), 1 + 0x1p-3);
  EXPECT_EQ(Stored(DType::kF8E5M2, 1 + 0x1p-3 + kStep), 1 + 0x1p-2);
  EXPECT_EQ(Stored(DType::kF8E5M2, -1 - 0x1p-3 - kStep), -1 - 0x1p-2);
  EXPECT_EQ(Stored(DType::kF8E5M2, 0x1p-17 + 0x1p-60), 0x1p-16);
  EXPECT_EQ(Stored(DType::kF8E4M3, 0x1p-10), 0);
  EXPECT_EQ(Stored(DType::kF8E4M3, -1e-300), 0);
}

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
  EXPECT_EQ(Stored(DType::kF16, 65519.999), 65504);
  EXPECT_EQ(Stored(DType::kF16, 65520), kInf);
  EXPECT_EQ(Stored(DType::kF16, -1e300), -kInf);
  EXPECT_EQ(Stored(DType::kBF16, 3.4e38), kInf);
  EXPECT_EQ(Stored(DType::kF32, 1e300), kInf);
  for (DType type : kAllDTypes) {
    if (!IsFloat(type)) continue;
    EXPECT_TRUE(Stored(type, kNaN).is_nan());
    EXPECT_TRUE(std::signbit(Stored(type, -0.0).real()));
  }
}

TEST(DType, IntegersTruncateAndSaturate) {
  EXPECT_EQ(Stored(DType::kI32, -2.9), -2);
  EXPECT_EQ(Stored(DType::kI32, 3e9), 2147483647);
  EXPECT_EQ(Stored(DType::kI32, -3e9), -2147483648.0);
  EXPECT_EQ(Stored(DType::kU8, -1), 0);
  EXPECT_EQ(Stored(DType::kU8, 255.9), 255);
  EXPECT_EQ(Stored(DType::kU8, 256), 255);
  EXPECT_EQ(Stored(DType::kI8, 128), 127);
  EXPECT_EQ(Stored(DType::kI8, -128.5), -128);
  EXPECT_EQ(Stored(DType::kI16, -1e9), -32768);
  EXPECT_EQ(Stored(DType::kU16, 65535.5), 65535);
  EXPECT_EQ(Stored(DType::kU32, 4294967295), 4294967295);
  EXPECT_EQ(Stored(DType::kU32, -0.5), 0);
  EXPECT_EQ(Stored(DType::kI32, kNaN), 0);
  EXPECT_EQ(Stored(DType::kBool, 0.5), 1);
  EXPECT_EQ(Stored(DType::kBool, 0), 0);
  EXPECT_EQ(Stored(DType::kI64, 1e30), INT64_MAX);
  EXPECT_EQ(Stored(DType::kI64, -kInf), INT64_MIN);
  EXPECT_EQ(Stored(DType::kU64, 1e30), UINT64_MAX);
  EXPECT_EQ(Stored(DType::kI64, UINT64_MAX), INT64_MAX);
  EXPECT_EQ(Stored(DType::kU64, INT64_MIN), 0);
  EXPECT_EQ(Stored(DType::kI32, INT64_MIN), INT32_MIN);
  EXPECT_EQ(Stored(DType::kBool, INT64_MIN), 1);
}

TEST(DType, IntegersOf64BitsAreExact) {
  for (const int64_t integer : {INT64_MIN, INT64_MIN + 1, (int64_t{1} << 53) + 1, INT64_MAX}) {
    int64_t held = 0;
    StoreElement(DType::kI64, &held, 0, integer);
    EXPECT_EQ(held, integer);
    EXPECT_EQ(LoadElement(DType::kI64, &held, 0), integer);
    const auto natural = static_cast<uint64_t>(integer);
    uint64_t bits = 0;
    StoreElement(DType::kU64, &bits, 0, natural);
    EXPECT_EQ(bits, natural);
    EXPECT_EQ(LoadElement(DType::kU64, &bits, 0), natural);
    EXPECT_EQ(BitCastElement(DType::kI64, DType::kU64, integer), natural);
    EXPECT_EQ(BitCastElement(DType::kU64, DType::kI64, natural), integer);
    double real = 0;
    StoreElement(DType::kF64, &real, 0, integer);
    EXPECT_EQ(real, static_cast<double>(integer));
  }
}

// As doubles these lie in the middle of two numbers of the type.
TEST(DType, WideIntegersAreRoundedToFloatsOnce) {
  constexpr int64_t kTop = int64_t{1} << 62, kTie = int64_t{1} << 38, kTieOfBF16 = int64_t{1} << 54;
  EXPECT_EQ(Stored(DType::kF32, kTop + kTie), 0x1p62);
  EXPECT_EQ(Stored(DType::kF32, kTop + kTie + 1), 0x1p62 + 0x1p39);
  EXPECT_EQ(Stored(DType::kF32, -kTop - kTie - 1), -0x1p62 - 0x1p39);
  EXPECT_EQ(Stored(DType::kF32, kTop + 3 * kTie - 1), 0x1p62 + 0x1p39);
  EXPECT_EQ(Stored(DType::kBF16, kTop + kTieOfBF16), 0x1p62);
  EXPECT_EQ(Stored(DType::kBF16, kTop + kTieOfBF16 + 1), 0x1p62 + 0x1p55);
  EXPECT_EQ(Stored(DType::kBF16, -kTop - 3 * kTieOfBF16 + 1), -0x1p62 - 0x1p55);
  EXPECT_EQ(Stored(DType::kF32, UINT64_MAX), 0x1p64);
  EXPECT_EQ(Stored(DType::kBF16, INT64_MIN), -0x1p63);
  EXPECT_EQ(Stored(DType::kF16, INT64_MIN), -kInf);
  EXPECT_EQ(Stored(DType::kF16, 65519), 65504);
  for (DType type : {DType::kF16, DType::kBF16}) {
    EXPECT_EQ(Stored(type, 1e-300), 0);
    EXPECT_EQ(Stored(type, -1e-300), 0);
  }
}

TEST(DType, IntegersWrapAroundToTheirLowBits) {
  EXPECT_EQ(Wrapped(DType::kI8, 200), -56);
  EXPECT_EQ(Wrapped(DType::kU8, -1), 255);
  EXPECT_EQ(Wrapped(DType::kI16, -32769), 32767);
  EXPECT_EQ(Wrapped(DType::kU16, 65537), 1);
  EXPECT_EQ(Wrapped(DType::kI32, int64_t{INT32_MAX} + 1), INT32_MIN);
  EXPECT_EQ(Wrapped(DType::kU32, int64_t{1} << 32), 0);
  EXPECT_EQ(Wrapped(DType::kI64, absl::int128(INT64_MAX) + 1), INT64_MIN);
  EXPECT_EQ(Wrapped(DType::kU64, -1), UINT64_MAX);
  EXPECT_EQ(Wrapped(DType::kU64, absl::int128(UINT64_MAX) + 8), 7);
  EXPECT_EQ(Wrapped(DType::kBool, 2), 0);
}

TEST(DType, RangesAreThoseOfTheirBits) {
  for (DType type : kAllDTypes) {
    if (!IsInteger(type)) continue;
    const int bits = static_cast<int>(SizeOf(type)) * 8;
    EXPECT_EQ(MinFinite(type), IsSigned(type) ? -std::ldexp(1, bits - 1) : 0) << Name(type);
    const double beyond = std::ldexp(1, IsSigned(type) ? bits - 1 : bits);
    EXPECT_LT(MaxFinite(type), beyond) << Name(type);
    EXPECT_EQ(std::nextafter(MaxFinite(type), beyond) >= beyond, bits == 64) << Name(type);
    EXPECT_EQ(Stored(type, MaxFinite(type)), MaxFinite(type)) << Name(type);
    const absl::int128 least = IsSigned(type) ? -(absl::int128(1) << (bits - 1)) : 0,
                       greatest = (absl::int128(1) << (IsSigned(type) ? bits - 1 : bits)) - 1;
    EXPECT_EQ(Least(type), Number::Of(least)) << Name(type);
    EXPECT_EQ(Greatest(type), Number::Of(greatest)) << Name(type);
    EXPECT_EQ(Wrapped(type, greatest + 1), Least(type)) << Name(type);
  }
  EXPECT_EQ(Least(DType::kBool), 0);
  EXPECT_EQ(Greatest(DType::kBool), 1);
  EXPECT_EQ(Least(DType::kF16), -kInf);
  EXPECT_EQ(Greatest(DType::kF64), kInf);
}

TEST(DType, LimitsAreTheTypesOwn) {
  for (DType type : kAllDTypes) {
    EXPECT_EQ(Stored(type, MaxFinite(type)), MaxFinite(type)) << Name(type);
    if (!IsFloat(type)) {
      EXPECT_EQ(UnitRoundoff(type), 0);
      EXPECT_EQ(MinSubnormal(type), 0);
      continue;
    }
    const Number beyond = Stored(type, 2 * MaxFinite(type));
    EXPECT_TRUE(HasInfinity(type) ? beyond == kInf : beyond.is_nan()) << Name(type);
    EXPECT_EQ(Stored(type, MinSubnormal(type)), MinSubnormal(type)) << Name(type);
    EXPECT_EQ(Stored(type, MinSubnormal(type) / 2), 0) << Name(type);
    EXPECT_EQ(Stored(type, 1 + UnitRoundoff(type)), 1) << Name(type);
    EXPECT_EQ(Stored(type, 1 + 2 * UnitRoundoff(type)), 1 + 2 * UnitRoundoff(type)) << Name(type);
  }
}

TEST(DType, ElementsAreIndexed) {
  std::vector<uint16_t> data(3, 0);
  StoreElement(DType::kF16, data.data(), 1, 1.5);
  EXPECT_EQ(LoadElement(DType::kF16, data.data(), 0), 0);
  EXPECT_EQ(LoadElement(DType::kF16, data.data(), 1), 1.5);
  EXPECT_EQ(LoadElement(DType::kF16, data.data(), 2), 0);
}

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
