#include "coconet/reference/bounded_bits.h"

#include <cmath>
#include <random>
#include <vector>

#include "coconet/reference/rounding.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr DType kIntegers[] = {DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                               DType::kU8, DType::kU16, DType::kU32, DType::kU64};

Bounded Near(const Number& value, double error) { return {{value}, {error}, error == 0}; }

TEST(BoundedBitCast, KnowsAllBitsButThoseOfZerosAndNaNs) {
  const auto expect = [](DType from, DType to, const Number& number, const Number& want) {
    EXPECT_EQ(BoundedBitCast(from, to, Near(number, 0)).value[0], want);
    EXPECT_EQ(BoundedBitCast(from, to, Near(number, 0)).error[0], 0) << NumberText(number);
  };
  expect(DType::kF64, DType::kI64, 1 + 0x1p-52, 0x3ff0000000000001);
  expect(DType::kI64, DType::kF64, 0x3ff0000000000001, 1 + 0x1p-52);
  expect(DType::kI64, DType::kU64, INT64_MIN, uint64_t{1} << 63);
  expect(DType::kU64, DType::kI64, UINT64_MAX, -1);
  expect(DType::kF32, DType::kU32, -1.0, 0xbf800000u);
  for (const double number : {0.0, std::nan("")})
    EXPECT_EQ(BoundedBitCast(DType::kF64, DType::kI64, Near(number, 0)).error[0], kUndetermined);
  EXPECT_EQ(BoundedBitCast(DType::kI64, DType::kU64, Near(7, 1)).error[0], 1);
}

/// A random integer: of any size, and so are its bits.
Number Draw(DType type, std::mt19937_64& random) {
  return Wrapped(type, static_cast<int64_t>(random()) >> random() % 64);
}

TEST(BoundedBits, HoldForAllIntegersWithinTheError) {
  std::mt19937_64 random(30);
  int64_t determined = 0, all = 0;
  for (const Pw fn : {Pw::kBitNot, Pw::kBitAnd, Pw::kBitOr, Pw::kBitXor, Pw::kShiftLeft,
                      Pw::kShiftRight, Pw::kShiftRightLogical}) {
    for (const DType type : kIntegers) {
      for (int again = 0; again < 400; ++again) {
        const bool shifts =
            fn == Pw::kShiftLeft || fn == Pw::kShiftRight || fn == Pw::kShiftRightLogical;
        const Number a = Draw(type, random);
        const Number b =
            shifts ? Wrapped(type, static_cast<int>(random() % 70) - 3) : Draw(type, random);
        const auto a_error = static_cast<int64_t>(random() % 20);
        const auto b_error = static_cast<int64_t>(random() % 4 == 0 ? random() % 3 : 0);
        const Bounded near_a = Near(a, static_cast<double>(a_error)),
                      near_b = Near(b, static_cast<double>(b_error));
        std::vector<const Bounded*> operands = {&near_a};
        if (fn != Pw::kBitNot) operands.push_back(&near_b);
        const Bounded result = BoundedPointwise(fn, type, operands);
        ++all;
        if (std::isinf(result.error[0])) continue;
        ++determined;
        for (int64_t i = -a_error; i <= a_error; ++i) {
          for (int64_t j = -b_error; j <= b_error; ++j) {
            const absl::int128 near[] = {a.integer() + i, b.integer() + j};
            const Number other[] = {Wrapped(type, near[0]), Wrapped(type, near[1])};
            if (other[0].integer() != near[0] || other[1].integer() != near[1]) continue;
            ASSERT_LE(Distance(EvalPointwise(fn, type, other), result.value[0]), result.error[0])
                << Info(fn).name << " of " << Name(type) << " " << NumberText(a) << " +- "
                << a_error << " and " << NumberText(b) << " +- " << b_error << " at " << i << ", "
                << j;
          }
        }
      }
    }
  }
  EXPECT_GT(determined, all / 2);
}

TEST(BoundedBits, OfFloatsHoldWithinTheError) {
  std::mt19937_64 random(31);
  std::uniform_real_distribution<double> any(-4, 4);
  for (const DType type : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const DType bits = type == DType::kF32   ? DType::kU32
                       : type == DType::kF64 ? DType::kI64
                                             : DType::kI16;
    int determined = 0;
    for (int again = 0; again < 400; ++again) {
      const double x = any(random) * std::ldexp(1, static_cast<int>(random() % 20) - 10);
      const double error = std::fabs(x) * 6 * UnitRoundoff(type);
      const Bounded there = BoundedBitCast(type, bits, Near(x, error));
      if (std::isinf(there.error[0])) continue;
      const Bounded back = BoundedBitCast(bits, type, there);
      ++determined;
      for (int step = -10; step <= 10; ++step) {
        const Number near = Stored(type, x + error * step / 10);
        if (std::fabs(near.real() - x) > error) continue;
        EXPECT_LE(Distance(BitCastElement(type, bits, near), there.value[0]), there.error[0]);
        EXPECT_LE(Distance(near, back.value[0]), back.error[0]);
      }
    }
    EXPECT_GT(determined, 350);
  }
}

TEST(BoundedBits, OfSeveralSignsAreNotDetermined) {
  EXPECT_TRUE(std::isinf(BoundedBitCast(DType::kF32, DType::kI32, Near(1.0, 2)).error[0]));
  EXPECT_TRUE(std::isinf(BoundedBitCast(DType::kU32, DType::kI32, Near(0x7fffffff, 1)).error[0]));
  EXPECT_TRUE(std::isinf(BoundedBitCast(DType::kI32, DType::kF32, Near(0, 1)).error[0]));
  EXPECT_TRUE(std::isinf(BoundedBitCast(DType::kU32, DType::kF32, Near(0x7f7fffff, 1)).error[0]));
}

/// Stochastic rounding by hand: the bits that are in doubt are those that are dropped.
TEST(BoundedBits, ThatAreDroppedLeaveNoError) {
  const Bounded x = Near(1.2345, 1e-6), noise = Near(0x1234, 0), mask = Near(0xffff0000u, 0);
  const Bounded bits = BoundedBitCast(DType::kF32, DType::kU32, x);
  EXPECT_GT(bits.error[0], 0);
  const Bounded sum = BoundedPointwise(Pw::kAdd, DType::kU32, {&bits, &noise});
  const Bounded kept = BoundedPointwise(Pw::kBitAnd, DType::kU32, {&sum, &mask});
  EXPECT_EQ(kept.error[0], 0);
  EXPECT_EQ(BoundedBitCast(DType::kU32, DType::kF32, kept).error[0], 0);
}

}  // namespace
}  // namespace coconet
