// Many elements together, which loops of vector instructions compute, and each of them alone.

#include "coconet/reference/bounded_arithmetic.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "coconet/reference/bounded.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// Numbers and bounds of all kinds: exact ones, halves, tiny, huge, special.
struct Draw {
  std::mt19937_64 random{20'26};

  double Real(DType type) {
    switch (random() % 12) {
      case 0:
        return 0;
      case 1:
        return -0.0;
      case 2:
        return std::numeric_limits<double>::infinity();
      case 3:
        return std::nan("");
      case 4:
        return random() % 2 == 0 ? MaxFinite(type) : MinFinite(type);
      case 5:
        return std::ldexp(1 + static_cast<double>(random() % 7), static_cast<int>(random() % 300));
      case 6:
        return MinSubnormal(type) * static_cast<double>(random() % 5);
      case 7:
      case 8:
        return static_cast<double>(static_cast<int>(random() % 64) - 32) / 8;
      default:
        return Stored(type, std::normal_distribution<double>()(random)).real();
    }
  }
  double Error() {
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
        return 0;
      case 3:
        return std::numeric_limits<double>::infinity();
      case 4:
        return 0x1p200;
      default:
        return std::ldexp(static_cast<double>(1 + random() % 100),
                          -10 - static_cast<int>(random() % 30));
    }
  }
  Bounded Floats(DType type, size_t count, bool exact) {
    Bounded drawn;
    for (size_t i = 0; i < count; ++i) {
      drawn.value.emplace_back(Real(type));
      drawn.error.push_back(exact ? 0 : Error());
    }
    drawn.exact = exact;
    return drawn;
  }
  Bounded Integers(DType type, size_t count) {
    Bounded drawn;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t kind = random() % 4;
      drawn.value.push_back(kind == 0   ? Least(type)
                            : kind == 1 ? Greatest(type)
                                        : Wrapped(type, static_cast<int64_t>(random())));
      drawn.error.push_back(0);
    }
    return drawn;
  }
};

Bounded ElementOf(const Bounded& all, size_t i) {
  const size_t at = all.size() == 1 ? 0 : i;
  return {{all.value[at]}, {all.error[at]}, all.exact};
}

bool AreSame(const Number& a, const Number& b) {
  return a.is_integer() == b.is_integer() &&
         (a.is_integer() ? a == b
                         : std::bit_cast<uint64_t>(a.real()) == std::bit_cast<uint64_t>(b.real()) ||
                               (a.is_nan() && b.is_nan()));
}

/// Expects elements that are computed together to be what each is alone, to the bit.
void ExpectEachAlone(Pw fn, DType type, const std::vector<const Bounded*>& operands) {
  const Bounded together = BoundedPointwise(fn, type, operands);
  bool exact = true;
  for (size_t i = 0; i < together.size(); ++i) {
    std::vector<Bounded> own;
    for (const Bounded* operand : operands) own.push_back(ElementOf(*operand, i));
    std::vector<const Bounded*> args;
    for (const Bounded& operand : own) args.push_back(&operand);
    const Bounded alone = BoundedPointwise(fn, type, args);
    EXPECT_TRUE(AreSame(together.value[i], alone.value[0]) &&
                std::bit_cast<uint64_t>(together.error[i]) ==
                    std::bit_cast<uint64_t>(alone.error[0]))
        << Info(fn).name << " of " << Name(type) << ", " << own[0].value[0].real() << " +- "
        << own[0].error[0] << " and " << own.back().value[0].real() << " +- " << own.back().error[0]
        << ": " << together.value[i].real() << " +- " << together.error[i] << ", alone "
        << alone.value[0].real() << " +- " << alone.error[0];
    exact &= alone.error[0] == 0;
  }
  EXPECT_EQ(together.exact, exact);
}

TEST(BoundedArithmetic, ComputesFloatsTogetherAsEachAlone) {
  Draw draw;
  for (const DType type :
       {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2}) {
    for (size_t f = 0; f < kPointwiseCount; ++f) {
      const auto fn = static_cast<Pw>(f);
      const PwInfo& info = Info(fn);
      if (info.of_bits || info.of_bools || info.arity > 2) continue;
      for (const size_t count : {size_t{8}, kTogether, 3 * kTogether + 5}) {
        for (const bool exact : {false, true}) {
          const Bounded a = draw.Floats(type, count, exact), b = draw.Floats(type, count, exact),
                        one = draw.Floats(type, 1, exact);
          if (info.arity == 1) {
            ExpectEachAlone(fn, type, {&a});
            continue;
          }
          ExpectEachAlone(fn, type, {&a, &b});
          ExpectEachAlone(fn, type, {&a, &one});
          ExpectEachAlone(fn, type, {&one, &b});
        }
      }
    }
  }
}

TEST(BoundedArithmetic, ComputesIntegersTogetherAsEachAlone) {
  Draw draw;
  for (const DType type : {DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8,
                           DType::kU16, DType::kU32, DType::kU64}) {
    for (size_t f = 0; f < kPointwiseCount; ++f) {
      const auto fn = static_cast<Pw>(f);
      const PwInfo& info = Info(fn);
      if (info.float_only || info.of_bools || info.arity != 2) continue;
      for (const size_t count : {size_t{8}, kTogether, 3 * kTogether + 5}) {
        const Bounded a = draw.Integers(type, count), b = draw.Integers(type, count),
                      one = draw.Integers(type, 1);
        ExpectEachAlone(fn, type, {&a, &b});
        ExpectEachAlone(fn, type, {&a, &one});
        ExpectEachAlone(fn, type, {&one, &b});
      }
    }
  }
}

TEST(BoundedArithmetic, HasLoopsForMostArithmetic) {
  for (const Pw fn : {Pw::kAdd, Pw::kSub, Pw::kMul, Pw::kDiv, Pw::kMin, Pw::kMax, Pw::kNeg})
    EXPECT_NE(FloatLoopOf(fn, DType::kF32, 0), nullptr) << Info(fn).name;
  EXPECT_EQ(FloatLoopOf(Pw::kTanh, DType::kF32, 0), nullptr);
  EXPECT_EQ(IntegerLoopOf(Pw::kMax, DType::kU64), nullptr);
}

}  // namespace
}  // namespace coconet
