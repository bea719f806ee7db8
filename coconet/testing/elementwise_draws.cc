#include "coconet/testing/elementwise_draws.h"

#include <algorithm>
#include <cmath>

namespace coconet {

Drafted ElementwiseDraws::Function() {
  const size_t row = Below(static_cast<int64_t>(AllPointwise().size()));
  std::vector<Drafted> operands;
  for (int i = 0; i < AllPointwise()[row].arity; ++i) operands.push_back(Any());
  return draft_.Apply(static_cast<Pw>(row), operands, 0);
}

Drafted ElementwiseDraws::Constant() {
  return draft_.Number(Pick({-2.0, -0.75, 0.0, 0.5, 1.0, 3.0}), draft_.type(Any()).dtype);
}

Drafted ElementwiseDraws::World() {
  return draft_.Add(WorldSize{draft_.type(Any()).dtype}, {}, kMostRanks);
}

Drafted ElementwiseDraws::Counted() {
  const Drafted a = AnyTensor();
  if (!a.there()) return a;
  const DType dtype = draft_.type(a).dtype;
  if (options_.kind != ProgramKind::kStep && Chance(50))
    return draft_.Add(RankNumber{dtype}, {}, kMostRanks);
  const Shape& shape = draft_.type(a).shape;
  const Shape counted =
      Chance(70) ? Shape{shape[Below(static_cast<int64_t>(shape.size()))]} : shape;
  return draft_.Add(Count{dtype, counted}, {},
                    IsBound(counted) ? static_cast<double>(NumElements(counted)) : 0);
}

Drafted ElementwiseDraws::Combined() {
  const Drafted a = Numbers(Any());
  for (int i = 0; i < 6; ++i) {
    const Drafted result = Combined(a, Any());
    if (result.there()) return result;
  }
  return {};
}

Drafted ElementwiseDraws::Combined(Drafted a, Drafted b) {
  const DType dtype = draft_.type(a).dtype;
  b = draft_.Cast(dtype, Numbers(b));
  const double sum = a.bound + b.bound, most = std::max(a.bound, b.bound),
               product = a.bound * b.bound;
  if (IsInteger(dtype) && Chance(30)) return OfBits(a, b);
  switch (Below(13)) {
    case 0:
    case 1:
      return draft_.Apply(Pw::kAdd, {a, b}, sum);
    case 2:
      return draft_.Apply(Pw::kSub, {a, b}, sum);
    case 3:
      return draft_.Apply(Pw::kSub, {b, a}, sum);
    case 4:
    case 5:
    case 6:
      return draft_.Apply(Pw::kMul, {a, b}, product);
    case 7:
      return draft_.Apply(Pw::kMin, {a, b}, most);
    case 8:
      return draft_.Apply(Pw::kMax, {b, draft_.Apply(Pw::kNeg, {a}, a.bound)}, most);
    case 9:
      return draft_.Apply(Pw::kMul, {draft_.Apply(Pw::kSign, {a}, 1), b}, b.bound);
    case 10: {
      const Drafted square = draft_.Apply(Pw::kMul, {b, b}, b.bound * b.bound);
      return draft_.Apply(Pw::kDiv, {a, IsFloat(dtype) ? draft_.Plus(square, 1) : b}, a.bound);
    }
    case 11: {
      const Drafted magnitude = draft_.Apply(Pw::kAbs, {b}, b.bound);
      return draft_.Apply(Pw::kRem, {a, draft_.Plus(magnitude, 1)}, a.bound);
    }
    default: {
      const Drafted base = draft_.Plus(draft_.Apply(Pw::kAbs, {a}, a.bound), 0.5);
      const double exponent = Pick({2.0, 0.75, 1.0});
      return draft_.Apply(Pw::kPow, {base, draft_.Number(exponent, dtype)},
                          std::max(2.0, std::pow(base.bound, exponent)));
    }
  }
}

Drafted ElementwiseDraws::OfBits(Drafted a, Drafted b) {
  const DType dtype = draft_.type(a).dtype;
  // A power of two above both, and above what sign bits make of them.
  const double most = std::exp2(std::ceil(std::log2(std::max(a.bound, b.bound) + 1)));
  const Drafted places = draft_.Number(Pick({0.0, 1.0, 3.0, 70.0}), dtype);
  switch (Below(7)) {
    case 0:
      return draft_.Apply(Pw::kBitAnd, {a, b}, most);
    case 1:
      return draft_.Apply(Pw::kBitOr, {a, b}, most);
    case 2:
      return draft_.Apply(Pw::kBitXor, {a, b}, most);
    case 3:
      return draft_.Apply(Pw::kBitNot, {a}, a.bound + 1);
    case 4:
      return draft_.Apply(Pw::kShiftLeft, {a, places}, a.bound * 8);
    case 5:
      return draft_.Apply(Pw::kShiftRight, {a, Chance(50) ? places : b}, a.bound);
    default: {
      // The bits of a negative number are those of an unsigned one.
      const double bits = std::exp2(8 * static_cast<double>(SizeOf(dtype)));
      return draft_.Apply(Pw::kShiftRightLogical, {a, draft_.Number(20, dtype)},
                          std::max(a.bound, bits / 0x1p20));
    }
  }
}

Drafted ElementwiseDraws::OfOne() {
  const Drafted a = Floats(Any());
  const auto magnitude = [&] { return draft_.Apply(Pw::kAbs, {a}, a.bound); };
  switch (Below(19)) {
    case 0:
      return draft_.Apply(Pw::kSqrt, {draft_.Plus(magnitude(), 0.25)}, std::sqrt(a.bound + 0.25));
    case 1:
      return draft_.Apply(Pw::kRsqrt, {draft_.Plus(magnitude(), 0.25)}, 2);
    case 2:
      return draft_.Apply(Pw::kExp, {draft_.Apply(Pw::kNeg, {magnitude()}, a.bound)}, 1);
    case 3:
      return draft_.Apply(Pw::kLog, {draft_.Plus(magnitude(), 1)}, std::log(a.bound + 1));
    case 4:
      return draft_.Apply(Pw::kTanh, {a}, 1);
    case 5:
      return draft_.Apply(Pw::kSigmoid, {a}, 1);
    case 6:
      return draft_.Apply(Pw::kRelu, {a}, a.bound);
    case 7:
      return draft_.Apply(Pw::kGelu, {a}, a.bound);
    case 8:
      return draft_.Apply(Pw::kSilu, {a}, a.bound);
    case 9:
      return draft_.Apply(Pw::kSign, {a}, 1);
    case 10:
      return draft_.Apply(Pw::kErf, {a}, 1);
    case 11:
      return draft_.Apply(Pw::kLog1p, {magnitude()}, std::log1p(a.bound));
    case 12:
      return draft_.Apply(Pw::kExpm1, {draft_.Apply(Pw::kNeg, {magnitude()}, a.bound)}, 1);
    case 13:
      return draft_.Apply(Pw::kSin, {a}, 1);
    case 14:
      return draft_.Apply(Pw::kCos, {a}, 1);
    case 15:
      return draft_.Apply(Pw::kFloor, {a}, a.bound + 1);
    case 16:
      return draft_.Apply(Pw::kCeil, {a}, a.bound + 1);
    case 17:
      return draft_.Apply(Pw::kRound, {draft_.Times(a, 4)}, 4 * a.bound + 1);
    default:
      return Averaged(a, a.bound);
  }
}

Drafted ElementwiseDraws::Averaged(Drafted sum, double bound) {
  if (!sum.there()) return sum;
  const Drafted world = draft_.Add(WorldSize{draft_.type(sum).dtype}, {}, kMostRanks);
  return draft_.Apply(Pw::kDiv, {sum, world}, bound);
}

Drafted ElementwiseDraws::Chosen() {
  const Drafted a = Numbers(Any());
  const Drafted b = draft_.Cast(draft_.type(a).dtype, Numbers(Any()));
  Drafted condition =
      draft_.Apply(Pick({Pw::kLt, Pw::kLe, Pw::kGt, Pw::kGe, Pw::kEq, Pw::kNe}), {a, b}, 1);
  if (Chance(30)) condition = draft_.Apply(Pw::kNot, {condition}, 1);
  if (Chance(40)) {
    const Drafted other = draft_.Cast(DType::kBool, Any());
    condition = draft_.Apply(Pick({Pw::kAnd, Pw::kOr}), {other, condition}, 1);
  }
  if (Chance(25)) return condition;
  return draft_.Apply(Pw::kSelect, {condition, a, b}, std::max(a.bound, b.bound));
}

Drafted ElementwiseDraws::Masked() {
  const Drafted a = Numbers(AnyTensor());
  if (!a.there()) return a;
  const DType dtype = draft_.type(a).dtype;
  const Drafted b = draft_.Cast(dtype, Numbers(Any())), at = draft_.Cast(dtype, IndicesOf(a));
  const Drafted condition = draft_.Apply(Pw::kLt, {at, draft_.Number(2, dtype)}, 1);
  return draft_.Apply(Pw::kSelect, {condition, a, b}, std::max(a.bound, b.bound));
}

Drafted ElementwiseDraws::CastOf() {
  const Drafted a = Any();
  return draft_.Add(Cast{AnyDType()}, {a}, a.bound);
}

Drafted ElementwiseDraws::BitsOf() {
  // Floats in [1, 2) by their bits, as random numbers are made, of what is exact: of other numbers
  // bits are not determined.
  const Drafted indices = Indices();
  if (!indices.there()) return indices;
  const auto number = [&](double n) { return draft_.Number(n, DType::kI32); };
  const Drafted mantissa = draft_.Apply(
      Pw::kShiftLeft, {draft_.Cast(DType::kI32, indices), number(Chance(50) ? 18 : 20)}, 0x1p31);
  const Drafted low = draft_.Apply(Pw::kBitAnd, {mantissa, number(0x7FFFFF)}, 0x1p23);
  const Drafted bits = draft_.Apply(Pw::kBitOr, {low, number(0x3F800000)}, 0x1p31);
  const Drafted floats = draft_.Add(BitCast{DType::kF32}, {bits}, 2);
  if (Chance(60)) return floats;
  const Drafted back = draft_.Add(BitCast{DType::kI32}, {floats}, 0x1p31);
  const Drafted high = draft_.Apply(Pw::kShiftRight, {back, number(16)}, 0x1p15);
  return draft_.Apply(Pw::kBitAnd, {high, number(127)}, 127);
}

Drafted ElementwiseDraws::Indices() { return IndicesOf(AnyTensor()); }

Drafted ElementwiseDraws::IndicesOf(Drafted a) {
  if (!a.there()) return a;
  const Shape& shape = draft_.type(a).shape;
  const int dim = Below(static_cast<int64_t>(shape.size()));
  return draft_.Add(Iota{Chance(80) ? DType::kI32 : DType::kI64, dim}, {a},
                    static_cast<double>(shape[dim].size));
}

}  // namespace coconet
