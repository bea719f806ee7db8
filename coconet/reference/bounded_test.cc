#include "coconet/reference/bounded.h"

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kF32 = UnitRoundoff(DType::kF32);
const double kF16 = UnitRoundoff(DType::kF16);

Bounded Near(const Number& value, double error) { return {{value}, {error}, error == 0}; }

Bounded Unary(Pw fn, const Bounded& a, DType dtype = DType::kF32) {
  return BoundedPointwise(fn, dtype, {&a});
}
Bounded Binary(Pw fn, const Bounded& a, const Bounded& b, DType dtype = DType::kF32) {
  return BoundedPointwise(fn, dtype, {&a, &b});
}

TEST(BoundedPointwise, RoundsOnceWhereTheOperationIsCorrectlyRounded) {
  const Bounded sum = Binary(Pw::kAdd, Near(3, 0), Near(0x1p-30, 0));
  EXPECT_EQ(sum.value[0], 3 + 0x1p-30);
  EXPECT_NEAR(sum.error[0], 3 * kF32, 1e-14);
  EXPECT_FALSE(sum.exact);
}

TEST(BoundedPointwise, ResultsThatNeedNoRoundingAreExact) {
  const auto is_exact = [](const Bounded& a) { return a.error[0] == 0; };
  EXPECT_TRUE(is_exact(Binary(Pw::kAdd, Near(1, 0), Near(2, 0))));
  EXPECT_TRUE(is_exact(Binary(Pw::kMul, Near(3, 0), Near(5, 0), DType::kF16)));
  EXPECT_TRUE(is_exact(Binary(Pw::kDiv, Near(7, 0), Near(4, 0))));
  EXPECT_FALSE(is_exact(Binary(Pw::kDiv, Near(7, 0), Near(3, 0))));
  EXPECT_TRUE(is_exact(Unary(Pw::kSqrt, Near(9, 0))));
  EXPECT_FALSE(is_exact(Unary(Pw::kSqrt, Near(2, 0))));
  // Whatever other elements are.
  const Bounded many{{2.0, 0.1}, {0, 1e-9}, false};
  EXPECT_TRUE(is_exact(Binary(Pw::kAdd, many, Near(1, 0))));
}

TEST(BoundedPointwise, ExactOperationsKeepTheOperandsBound) {
  EXPECT_EQ(Unary(Pw::kNeg, Near(2, 0)).error[0], 0);
  EXPECT_TRUE(Unary(Pw::kNeg, Near(2, 0)).exact);
  EXPECT_EQ(Unary(Pw::kAbs, Near(-2, 0.25)).error[0], 0.25);
  EXPECT_EQ(Binary(Pw::kMax, Near(1, 0.25), Near(3, 0.5)).error[0], 0.5);
}

TEST(BoundedPointwise, CarriesOperandErrorsThroughTheFunction) {
  EXPECT_NEAR(Binary(Pw::kSub, Near(1, 0.25), Near(1, 0.5)).error[0], 0.75, 1e-6);
  EXPECT_NEAR(Unary(Pw::kExp, Near(1, 0.5)).error[0], std::exp(1.5) - std::exp(1), 1e-5);
  // Both operands at once: their errors multiply where both values are 0.
  EXPECT_NEAR(Binary(Pw::kMul, Near(0, 0.5), Near(0, 0.25)).error[0], 0.125, 1e-6);
}

TEST(BoundedPointwise, CoversTheExtremumOfAFunctionThatIsNotMonotone) {
  EXPECT_GE(Unary(Pw::kAbs, Near(0.1, 0.5)).error[0], 0.5);
  // silu has its minimum, -0.278, at -1.278.
  const Bounded silu = Unary(Pw::kSilu, Near(-1, 0.5));
  EXPECT_GE(silu.error[0], silu.value[0].real() + 0.278464);
}

TEST(BoundedPointwise, ASignIsInDoubtWhereZeroIsWithinReach) {
  EXPECT_EQ(Unary(Pw::kSign, Near(-2, 0.25)).value[0], -1);
  EXPECT_EQ(Unary(Pw::kSign, Near(-2, 0.25)).error[0], 0);
  EXPECT_EQ(Unary(Pw::kSign, Near(0.1, 0.25)).error[0], 2);
  EXPECT_EQ(Unary(Pw::kSign, Near(-0.25, 0.25)).error[0], 1);
  EXPECT_EQ(Unary(Pw::kSign, Near(0, 0.25)).error[0], 1);
  EXPECT_EQ(Unary(Pw::kSign, Near(0, 0)).value[0], 0);
  EXPECT_EQ(Unary(Pw::kSign, Near(0, 0)).error[0], 0);
  EXPECT_EQ(Unary(Pw::kSign, Near(-7, 0), DType::kI32).value[0], -1);
  EXPECT_EQ(Unary(Pw::kSign, Near(7, 0), DType::kU8).value[0], 1);
}

TEST(BoundedPointwise, ARootNearZeroIsAsUncertainAsTheRootOfTheError) {
  const Bounded root = Unary(Pw::kSqrt, Near(0, 1e-8));
  EXPECT_EQ(root.value[0], 0);
  EXPECT_NEAR(root.error[0], 1e-4, 1e-9);
  // The other side is the edge of the domain, not a NaN.
  EXPECT_NEAR(Unary(Pw::kSqrt, Near(1e-8, 3e-8)).error[0], 1e-4, 1e-9);
}

TEST(BoundedPointwise, WhatIsNotDeterminedMayBeNaNAndStaysSoWhereTheResultIsBounded) {
  EXPECT_EQ(Unary(Pw::kTanh, Near(1, kInfinity)).error[0], kInfinity);
  EXPECT_EQ(Unary(Pw::kSigmoid, Near(1, kInfinity)).error[0], kInfinity);
  EXPECT_EQ(Binary(Pw::kMin, Near(1, kInfinity), Near(0, 0)).error[0], kInfinity);
}

TEST(BoundedPointwise, NearAPoleNothingIsDetermined) {
  EXPECT_EQ(Binary(Pw::kDiv, Near(1, 0), Near(1e-9, 1e-8)).error[0], kInfinity);
  EXPECT_EQ(Binary(Pw::kDiv, Near(1, 0), Near(0, 0)).error[0], kInfinity);
  EXPECT_EQ(Unary(Pw::kRsqrt, Near(1e-9, 1e-8)).error[0], kInfinity);
  EXPECT_EQ(Unary(Pw::kLog, Near(1e-9, 1e-8)).error[0], kInfinity);
  EXPECT_EQ(Binary(Pw::kPow, Near(1e-9, 1e-8), Near(-2, 0)).error[0], kInfinity);
  EXPECT_EQ(Binary(Pw::kPow, Near(-2, 0), Near(2, 1e-6)).error[0], kInfinity);
  EXPECT_LT(Binary(Pw::kPow, Near(2, 1e-8), Near(-2, 0)).error[0], 1e-5);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Binary(Pw::kPow, Near(0.99, 0.02), Near(nan, 0)).error[0], kInfinity);
  EXPECT_EQ(Binary(Pw::kPow, Near(nan, 0), Near(0.01, 0.02)).error[0], kInfinity);
  EXPECT_EQ(Binary(Pw::kPow, Near(0.9, 0.02), Near(nan, 0)).error[0], 0);
  EXPECT_EQ(Binary(Pw::kPow, Near(1, 0), Near(nan, 0)).value[0], 1);
}

TEST(BoundedPointwise, WhatMayOverflowIsNotDetermined) {
  EXPECT_EQ(Binary(Pw::kMul, Near(1000, 0), Near(1000, 0), DType::kF16).error[0], kInfinity);
  EXPECT_LT(Binary(Pw::kMul, Near(1000, 0), Near(1000, 0), DType::kF32).error[0], 1);
  EXPECT_EQ(Binary(Pw::kSub, Near(65000, 1000), Near(0, 0), DType::kF16).error[0], kInfinity);
}

TEST(BoundedPointwise, OutsideOfAFunctionsDomainIsNaN) {
  EXPECT_TRUE(Unary(Pw::kSqrt, Near(-1, 0.5)).value[0].is_nan());
  EXPECT_EQ(Unary(Pw::kSqrt, Near(-1, 0.5)).error[0], 0);
  EXPECT_EQ(Unary(Pw::kSqrt, Near(-1, 2)).error[0], kInfinity);
}

TEST(BoundedPointwise, WhatFollowsFromInfinitiesAndNaNsIsDetermined) {
  const double nan = std::nan("");
  const auto expect = [](const Bounded& have, double want) {
    EXPECT_TRUE(have.value[0] == want || (have.value[0].is_nan() && std::isnan(want)))
        << NumberText(have.value[0]) << ", want " << want;
    EXPECT_EQ(have.error[0], 0) << want;
  };
  expect(Unary(Pw::kNeg, Near(kInfinity, 0)), -kInfinity);
  expect(Binary(Pw::kAdd, Near(kInfinity, 0), Near(1, 0.5)), kInfinity);
  expect(Binary(Pw::kSub, Near(kInfinity, 0), Near(kInfinity, 0)), nan);
  expect(Binary(Pw::kMax, Near(nan, 0), Near(1, 0.5)), nan);
  expect(Binary(Pw::kMin, Near(1, 0), Near(nan, 0)), nan);
  expect(Unary(Pw::kSqrt, Near(nan, 0)), nan);
  expect(Binary(Pw::kLt, Near(1, 0.5), Near(kInfinity, 0)), 1);
  expect(Binary(Pw::kEq, Near(kInfinity, 0), Near(kInfinity, 0)), 1);
  expect(Binary(Pw::kLe, Near(nan, 0), Near(1, 0)), 0);
  expect(BoundedScalar(kInfinity, DType::kF32), kInfinity);
  expect(BoundedScalar(nan, DType::kF16), nan);
  EXPECT_EQ(BoundedScalar(1e39, DType::kF32).error[0], kInfinity) << "held as an infinity";
  expect(BoundedCast(DType::kF32, DType::kBF16, Near(-kInfinity, 0)), -kInfinity);
  // Whether an operand is infinite, or how infinite, may be in doubt.
  EXPECT_EQ(Binary(Pw::kAdd, Near(kInfinity, kInfinity), Near(1, 0)).error[0], kInfinity);
  EXPECT_EQ(Binary(Pw::kMul, Near(kInfinity, 0), Near(1e-9, 1e-8)).error[0], kInfinity);
}

TEST(BoundedReduce, InfinitiesAndNaNsAreValues) {
  const double nan = std::nan("");
  const Bounded one = Near(1, 0.25), infinite = Near(kInfinity, 0), minus = Near(-kInfinity, 0),
                none = Near(nan, 0), doubtful = Near(nan, kInfinity);
  const auto reduce = [](ReduceKind kind, std::vector<const Bounded*> ranks) {
    return BoundedReduce(kind, DType::kF32, ranks);
  };
  for (ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMax, ReduceKind::kMin}) {
    EXPECT_TRUE(reduce(kind, {&one, &none, &infinite}).value[0].is_nan());
    EXPECT_EQ(reduce(kind, {&one, &none, &infinite}).error[0], 0);
    EXPECT_EQ(reduce(kind, {&one, &doubtful}).error[0], kInfinity);
  }
  EXPECT_EQ(reduce(ReduceKind::kSum, {&one, &infinite}).value[0], kInfinity);
  EXPECT_EQ(reduce(ReduceKind::kSum, {&one, &infinite}).error[0], 0);
  EXPECT_TRUE(reduce(ReduceKind::kSum, {&minus, &infinite}).value[0].is_nan());
  EXPECT_EQ(reduce(ReduceKind::kMax, {&one, &infinite}).value[0], kInfinity);
  EXPECT_EQ(reduce(ReduceKind::kMax, {&one, &infinite}).error[0], 0);
  EXPECT_EQ(reduce(ReduceKind::kMin, {&one, &infinite}).error[0], 0.25);
}

TEST(BoundedPointwise, NarrowTypesMayBeStoredOrStayInF32) {
  const Bounded product = Binary(Pw::kMul, Near(3, 0), Near(683, 0), DType::kF16);
  EXPECT_GE(product.error[0], 2049 * kF16);
  EXPECT_LE(product.error[0], 2049 * (kF16 + 2 * kF32) + MinSubnormal(DType::kF16));
}

TEST(BoundedPointwise, ComparisonsAreInDoubtWithinTheOperandsErrors) {
  const auto doubt = [](Pw fn, const Bounded& a, const Bounded& b) {
    return Binary(fn, a, b).error[0];
  };
  EXPECT_EQ(doubt(Pw::kLt, Near(1, 0.5), Near(2, 0.25)), 0);
  EXPECT_EQ(doubt(Pw::kLt, Near(1, 0.5), Near(2, 0.5)), 1);
  EXPECT_EQ(doubt(Pw::kEq, Near(1, 0), Near(1, 0)), 0);
  EXPECT_EQ(doubt(Pw::kNe, Near(1, 0), Near(1, 1e-9)), 1);
  EXPECT_EQ(doubt(Pw::kGe, Near(1, kInfinity), Near(2, 0)), 1);
}

TEST(BoundedPointwise, LogicIsInDoubtWhereAnOperandInDoubtDecidesIt) {
  const Bounded no = Near(0, 0), yes = Near(1, 0), maybe_no = Near(0, 1), maybe_yes = Near(1, 1);
  const auto logic = [](Pw fn, const Bounded& a, const Bounded& b) {
    const Bounded result = Binary(fn, a, b, DType::kBool);
    return std::pair(result.value[0].real(), result.error[0]);
  };
  EXPECT_EQ(logic(Pw::kAnd, yes, yes), std::pair(1., 0.));
  EXPECT_EQ(logic(Pw::kAnd, no, maybe_yes), std::pair(0., 0.));
  EXPECT_EQ(logic(Pw::kAnd, maybe_no, yes), std::pair(0., 1.));
  EXPECT_EQ(logic(Pw::kAnd, maybe_no, maybe_no), std::pair(0., 1.));
  EXPECT_EQ(logic(Pw::kOr, yes, maybe_no), std::pair(1., 0.));
  EXPECT_EQ(logic(Pw::kOr, maybe_yes, no), std::pair(1., 1.));
  const Bounded negation = BoundedPointwise(Pw::kNot, DType::kBool, {&maybe_no});
  EXPECT_EQ(negation.value[0], 1);
  EXPECT_EQ(negation.error[0], 1);
}

TEST(BoundedPointwise, ASelectionInDoubtCoversBothBranches) {
  const Bounded sure = Near(1, 0), doubtful = Near(1, 1), a = Near(3, 0.5), b = Near(7, 0.25);
  const auto select = [](const Bounded& c, const Bounded& x, const Bounded& y) {
    return BoundedPointwise(Pw::kSelect, DType::kF32, {&c, &x, &y});
  };
  EXPECT_EQ(select(sure, a, b).value[0], 3);
  EXPECT_EQ(select(sure, a, b).error[0], 0.5);
  EXPECT_EQ(select(sure, a, Near(7, kInfinity)).error[0], 0.5);
  EXPECT_EQ(select(doubtful, a, b).error[0], 4.25);
  EXPECT_EQ(select(doubtful, a, Near(7, kInfinity)).error[0], kInfinity);
}

TEST(BoundedCast, LeavesWhatTheNewTypeHoldsAsItIs) {
  EXPECT_EQ(BoundedCast(DType::kF32, DType::kF16, Near(1.5, 0)).error[0], 0);
  EXPECT_GT(BoundedCast(DType::kF32, DType::kF16, Near(1.5, 1e-9)).error[0], 1e-4);
  EXPECT_GT(BoundedCast(DType::kF32, DType::kF16, Near(1.0001, 0)).error[0], 0);
}

TEST(BoundedCast, LeavesInfinitiesThatATypeLacksUndetermined) {
  for (double infinity : {kInfinity, -kInfinity}) {
    const Bounded cast = BoundedCast(DType::kF32, DType::kF8E4M3, Near(infinity, 0));
    EXPECT_TRUE(cast.value[0].is_nan());
    EXPECT_EQ(cast.error[0], kInfinity);
    EXPECT_EQ(BoundedCast(DType::kF32, DType::kF8E5M2, Near(infinity, 0)).error[0], 0);
  }
  EXPECT_EQ(BoundedCast(DType::kF32, DType::kF8E4M3, Near(NAN, 0)).error[0], 0);
}

TEST(BoundedPointwise, SpreadsOneEntryOverMany) {
  const Bounded many{{1, 2, 3}, {0, 0, 0}, true};
  const Bounded product = Binary(Pw::kMul, Near(2, 0), many);
  EXPECT_EQ(product.value, (std::vector<Number>{2, 4, 6}));
}

TEST(BoundedPointwise, IntegersAreExact) {
  const Bounded sum = Binary(Pw::kAdd, Near(2000000000, 0), Near(2000000000, 0), DType::kI32);
  EXPECT_EQ(sum.value[0], 4000000000.0 - 4294967296.0);
  EXPECT_EQ(sum.error[0], 0);
  const Bounded quotient = Binary(Pw::kDiv, Near(-7, 0), Near(2, 0), DType::kI32);
  EXPECT_EQ(quotient.value[0], -3);
  EXPECT_EQ(quotient.error[0], 0);
  // An operand that was a float may be off by one.
  EXPECT_GE(Binary(Pw::kMul, Near(10, 1), Near(3, 0), DType::kI64).error[0], 3);
  // Where an operand has an error, so has what doubles do not hold.
  EXPECT_EQ(Binary(Pw::kMul, Near(10000000000, 1), Near(10000000000, 0), DType::kI64).error[0],
            kInfinity);
}

TEST(BoundedPointwise, IntegersThatNoDoubleHoldsAreExact) {
  const auto expect = [](const Bounded& have, const Number& want) {
    EXPECT_EQ(have.value[0], want);
    EXPECT_EQ(have.error[0], 0) << NumberText(want);
    EXPECT_TRUE(have.exact);
  };
  constexpr int64_t kOdd = (int64_t{1} << 53) + 1;
  expect(Binary(Pw::kAdd, Near(kOdd - 1, 0), Near(1, 0), DType::kI64), kOdd);
  expect(Binary(Pw::kMul, Near(3, 0), Near(3002399751580331, 0), DType::kI64), kOdd);
  expect(Binary(Pw::kMul, Near(10000000000, 0), Near(10000000000, 0), DType::kI64),
         7766279631452241920);
  expect(Binary(Pw::kMul, Near(UINT64_MAX, 0), Near(3, 0), DType::kU64), UINT64_MAX - 2);
  expect(Binary(Pw::kBitXor, Near(kOdd, 0), Near(INT64_MIN, 0), DType::kI64), INT64_MIN + kOdd);
  expect(Binary(Pw::kLt, Near(kOdd - 1, 0), Near(kOdd, 0), DType::kI64), 1);
  expect(Unary(Pw::kNeg, Near(INT64_MIN, 0), DType::kI64), INT64_MIN);
  expect(BoundedScalar(UINT64_MAX, DType::kU64), UINT64_MAX);
  expect(BoundedCast(DType::kI64, DType::kU64, Near(kOdd, 0)), kOdd);
  expect(BoundedCast(DType::kU64, DType::kI64, Near(UINT64_MAX, 0)), INT64_MAX);
  const Bounded a = Near(INT64_MAX, 0), b = Near(kOdd, 0);
  expect(BoundedReduce(ReduceKind::kSum, DType::kI64, {&a, &b, &b}), INT64_MIN + 2 * kOdd - 1);
  expect(BoundedReduce(ReduceKind::kMax, DType::kI64, {&b, &a, &b}), INT64_MAX);
  expect(BoundedReduce(ReduceKind::kMin, DType::kI64, {&a, &b}), kOdd);
}

TEST(BoundedScalar, CarriesTheRoundingOfTheConstant) {
  EXPECT_EQ(BoundedScalar(0.5, DType::kF16).error[0], 0);
  EXPECT_EQ(BoundedScalar(0.9, DType::kF32).error[0], std::fabs(0.9 - static_cast<double>(0.9F)));
  EXPECT_EQ(BoundedScalar(0.9, DType::kF64).error[0], 0);
}

TEST(BoundedCast, RoundsWhenItNarrows) {
  EXPECT_EQ(BoundedCast(DType::kF16, DType::kF32, Near(3, 0)).error[0], 0);
  EXPECT_GE(BoundedCast(DType::kF32, DType::kF16, Near(3.001, 0)).error[0], 3 * kF16);
  EXPECT_GT(BoundedCast(DType::kBF16, DType::kF16, Near(1e-9, 0)).error[0], 0);
  EXPECT_EQ(BoundedCast(DType::kF32, DType::kF16, Near(70000, 0)).error[0], kInfinity);
}

TEST(BoundedCast, RoundsAKnownIntegerToOneNumber) {
  const auto expect = [](DType from, DType to, const Number& number, double want) {
    const Bounded cast = BoundedCast(from, to, Near(number, 0));
    EXPECT_EQ(cast.value[0], want) << NumberText(number);
    EXPECT_EQ(cast.error[0], 0) << NumberText(number);
  };
  expect(DType::kI32, DType::kF32, 16777217, 16777216);
  expect(DType::kI64, DType::kF32, (int64_t{1} << 53) + 1, 0x1p53);
  expect(DType::kI64, DType::kF32, (int64_t{1} << 60) + (int64_t{1} << 36) + 1,
         0x1p60 + 0x1p37);  // a double would be halfway between two
  expect(DType::kU64, DType::kF64, UINT64_MAX, 0x1p64);
  EXPECT_EQ(BoundedCast(DType::kF64, DType::kF32, Near(0.1, 0)).value[0], 0.1);
  EXPECT_GT(BoundedCast(DType::kI32, DType::kBF16, Near(257, 0)).error[0], 0);
}

TEST(BoundedCast, ToAndFromIntegers) {
  EXPECT_EQ(BoundedCast(DType::kF32, DType::kI32, Near(-2.75, 0.25)).value[0], -2);
  EXPECT_EQ(BoundedCast(DType::kF32, DType::kI32, Near(-2.75, 0.25)).error[0], 1);
  EXPECT_EQ(BoundedCast(DType::kF32, DType::kI32, Near(2.5, 0.25)).error[0], 0);
  for (const auto& [number, dtype, want] :
       {std::tuple(-3.0, DType::kU8, Number(0)), std::tuple(1e10, DType::kI32, Number(INT32_MAX)),
        std::tuple(-kInfinity, DType::kI32, Number(INT32_MIN)),
        std::tuple(std::nan(""), DType::kI64, Number(0)),
        std::tuple(1e30, DType::kI64, Number(INT64_MAX))}) {
    EXPECT_EQ(BoundedCast(DType::kF32, dtype, Near(number, 0)).value[0], want) << number;
    EXPECT_EQ(BoundedCast(DType::kF32, dtype, Near(number, 0)).error[0], 0) << number;
  }
  EXPECT_EQ(BoundedCast(DType::kF32, DType::kU8, Near(254.5, 5)).error[0], 5);
  EXPECT_EQ(BoundedCast(DType::kF32, DType::kI64, Near(1e17, 1)).error[0], kInfinity);
  EXPECT_EQ(BoundedCast(DType::kF32, DType::kI32, Near(1, kInfinity)).error[0], kInfinity);
  EXPECT_EQ(BoundedCast(DType::kI32, DType::kF32, Near(16777216, 0)).error[0], 0);
  EXPECT_GE(BoundedCast(DType::kI32, DType::kF32, Near(16777217, 1)).error[0], 2);
  EXPECT_EQ(BoundedCast(DType::kF32, DType::kBool, Near(0.5, 0.25)).error[0], 0);
  EXPECT_EQ(BoundedCast(DType::kF32, DType::kBool, Near(0.5, 0.5)).error[0], 1);
}

TEST(BoundedReduce, AddsARoundingOfTheMagnitudesForEachAddition) {
  const Bounded a = Near(100, 0), b = Near(-100, 0), c = Near(1, 0.5);
  const Bounded sum = BoundedReduce(ReduceKind::kSum, DType::kF32, {&a, &b, &c});
  EXPECT_EQ(sum.value[0], 1);
  EXPECT_NEAR(sum.error[0], 0.5 + 2 * 201.5 * kF32, 1e-7);
  EXPECT_EQ(BoundedReduce(ReduceKind::kSum, DType::kF32, {&a}).error[0], 0);
  const Bounded most = Near(40000, 0), least = Near(-40000, 0);
  EXPECT_EQ(BoundedReduce(ReduceKind::kSum, DType::kF16, {&most, &most, &least}).error[0],
            kInfinity)
      << "a partial sum overflows in some orders";
}

/// x as `dtype` has it.
double Held(DType dtype, double x) { return Stored(dtype, x).real(); }

/// x with `bits` bits less than `dtype` has, towards 0.
double Coarse(DType dtype, double x, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  const double unit = std::ldexp(UnitRoundoff(dtype), bits);
  return std::ldexp(std::trunc(fraction / unit) * unit, exponent);
}

/// Random operands of a sum over ranks, and what may be made of them.
class SumOverRanks {
 public:
  SumOverRanks(DType dtype, int ranks, std::mt19937_64& random) : dtype_(dtype), random_(random) {
    std::uniform_real_distribution<double> magnitude(0.5, 2);
    const bool one_sign = random() % 2 == 0;  // where errors may add up
    for (int rank = 0; rank < ranks; ++rank) {
      const double x = Held(dtype, magnitude(random));
      operands_.push_back(Near(one_sign || random() % 2 == 0 ? x : -x, 0));
    }
  }
  Bounded Bound(const ReduceTerms& terms) const {
    std::vector<const Bounded*> ranks;
    for (const Bounded& operand : operands_) ranks.push_back(&operand);
    return BoundedReduce(ReduceKind::kSum, dtype_, ranks, terms);
  }
  /// Two by two in a random order, as rings and trees add up; `add` makes each sum.
  double InAnyOrder(const std::function<double(double)>& add, size_t left_out = 0) {
    std::vector<double> left;
    for (size_t i = left_out; i < operands_.size(); ++i)
      left.push_back(operands_[i].value[0].real());
    const auto take = [&] {
      std::swap(left[random_() % left.size()], left.back());
      const double taken = left.back();
      left.pop_back();
      return taken;
    };
    while (left.size() > 1) {
      const double a = take(), b = take();
      left.push_back(add(a + b));
    }
    return left[0];
  }

 private:
  DType dtype_;
  std::mt19937_64& random_;
  std::vector<Bounded> operands_;
};

constexpr ReduceTerms kOnce = {}, kEach = {.numerics = {.sum_rounding = SumRounding::kEach}};

TEST(BoundedReduce, AdmitsWhatEachWayOfRoundingMakesInAnyOrder) {
  std::mt19937_64 random(22);
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const int ranks : {2, 3, 4, 8, 64, 1000}) {
      for (int i = 0; i < 200; ++i) {
        SumOverRanks sum(dtype, ranks, random);
        const Bounded each = sum.Bound(kEach), once = sum.Bound(kOnce);
        const double rounded = sum.InAnyOrder([&](double x) { return Held(dtype, x); });
        ASSERT_LE(std::fabs(rounded - each.value[0].real()), each.error[0])
            << Name(dtype) << " " << ranks;
        const double in_f32 =
            Held(dtype, sum.InAnyOrder([](double x) { return static_cast<float>(x); }));
        ASSERT_LE(std::fabs(in_f32 - once.value[0].real()), once.error[0])
            << Name(dtype) << " " << ranks;
      }
    }
  }
}

/// Whether a sum lies outside of the bound for some of many operands.
bool IsFound(DType dtype, int ranks, const ReduceTerms& terms,
             const std::function<double(SumOverRanks&)>& make) {
  std::mt19937_64 random(23);
  for (int i = 0; i < 3000; ++i) {
    SumOverRanks sum(dtype, ranks, random);
    const Bounded want = sum.Bound(terms);
    if (std::fabs(make(sum) - want.value[0].real()) > want.error[0]) return true;
  }
  return false;
}

TEST(BoundedReduce, FindsWhatRoundsMoreThanIsAdmitted) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    for (const int ranks : {3, 4, 8, 16}) {
      const auto rounds_each = [&](SumOverRanks& sum) {
        return sum.InAnyOrder([&](double x) { return Held(dtype, x); });
      };
      EXPECT_TRUE(IsFound(dtype, ranks, kOnce, rounds_each)) << Name(dtype) << ranks;
      EXPECT_FALSE(IsFound(dtype, ranks, kEach, rounds_each));
      const auto is_coarse = [&](SumOverRanks& sum) {
        return sum.InAnyOrder([&](double x) { return Coarse(dtype, x, 3); });
      };
      EXPECT_TRUE(IsFound(dtype, ranks, kEach, is_coarse)) << Name(dtype) << ranks;
      const auto lacks_one = [&](SumOverRanks& sum) {
        return sum.InAnyOrder([&](double x) { return Held(dtype, x); }, 1);
      };
      EXPECT_TRUE(IsFound(dtype, ranks, kEach, lacks_one)) << Name(dtype) << ranks;
      EXPECT_TRUE(IsFound(dtype, ranks, kOnce, lacks_one)) << Name(dtype) << ranks;
    }
  }
}

TEST(BoundedReduce, RoundingMattersToNarrowTypesWithinANodeOnly) {
  const Bounded a = Near(256, 0), b = Near(1, 0);
  const auto error = [&](DType dtype, const ReduceTerms& terms) {
    return BoundedReduce(ReduceKind::kSum, dtype, {&a, &b, &b, &b}, terms).error[0];
  };
  EXPECT_EQ(error(DType::kF32, kOnce), error(DType::kF32, kEach));
  EXPECT_EQ(error(DType::kF64, kOnce), error(DType::kF64, kEach));
  EXPECT_EQ(error(DType::kI32, kEach), 0);
  EXPECT_EQ(error(DType::kBF16, {.crosses_nodes = true}), error(DType::kBF16, kEach));
  // Where each addition rounds, the sum may be 256.
  EXPECT_LT(error(DType::kBF16, kOnce), 3);
  EXPECT_GE(error(DType::kBF16, kEach), 3);
  // Errors of errors count where there are many additions.
  const std::vector<const Bounded*> many(2000, &b);
  EXPECT_GT(BoundedReduce(ReduceKind::kSum, DType::kBF16, many, kEach).error[0],
            2 * 2000 * 1999 * UnitRoundoff(DType::kBF16));
}

TEST(BoundedReduce, WhereTheCallerExcludesNaNsExtremesOfOneAreNotDetermined) {
  const Bounded one = Near(1, 0), nan = Near(std::nan(""), 0);
  const ReduceTerms none = {.numerics = {.nans = Nans::kNone}};
  for (const ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin}) {
    EXPECT_EQ(BoundedReduce(kind, DType::kF32, {&one, &nan}).error[0], 0);
    EXPECT_EQ(BoundedReduce(kind, DType::kF32, {&one, &nan}, none).error[0], kInfinity);
    EXPECT_EQ(BoundedReduce(kind, DType::kF32, {&one, &one}, none).error[0], 0);
  }
  EXPECT_EQ(BoundedReduce(ReduceKind::kSum, DType::kF32, {&one, &nan}, none).error[0], 0);
}

TEST(BoundedReduce, MaxAndMinAreExact) {
  const Bounded a = Near(1, 0.25), b = Near(2, 0.5), c = Near(1.75, 1);
  EXPECT_EQ(BoundedReduce(ReduceKind::kMax, DType::kF32, {&a, &b, &c}).value[0], 2);
  EXPECT_EQ(BoundedReduce(ReduceKind::kMax, DType::kF32, {&a, &b, &c}).error[0], 0.75);
  EXPECT_EQ(BoundedReduce(ReduceKind::kMin, DType::kF32, {&a, &b}).error[0], 0.25);
}

TEST(BoundedReduce, MaxAndMinOfWhatIsNotDeterminedAreNot) {
  const Bounded one = Near(1, 0.5);
  for (const double value : {0.0, kInfinity, -kInfinity}) {
    const Bounded any = Near(value, kInfinity);
    for (ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin})
      EXPECT_EQ(BoundedReduce(kind, DType::kF32, {&any, &one}).error[0], kInfinity) << value;
  }
}

TEST(BoundedReduce, MaxAndMinWithANaNDependOnTheOrder) {
  const Bounded number = Near(1, 0), nan = {{std::nan("")}, {kInfinity}, false};
  for (ReduceKind kind : {ReduceKind::kMax, ReduceKind::kMin}) {
    EXPECT_EQ(BoundedReduce(kind, DType::kF32, {&number, &nan}).error[0], kInfinity);
    EXPECT_EQ(BoundedReduce(kind, DType::kF32, {&nan, &number}).error[0], kInfinity);
  }
}

}  // namespace
}  // namespace coconet
