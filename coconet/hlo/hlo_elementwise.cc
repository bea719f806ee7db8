#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/hlo/hlo_operations.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {
namespace {

using Operands = absl::Span<const HloValue>;

bool IsPred(const HloValue& a) { return a.shape.type == HloType::kPred; }
bool IsFloatOf(const HloValue& a) { return IsFloat(*DTypeOf(a.shape.type)); }

HloValue Xor(const HloValue& a, const HloValue& b, HloArrays& arrays) {
  const HloValue only_a = arrays.Apply(Pw::kAnd, {a, arrays.Apply(Pw::kNot, {b})}),
                 only_b = arrays.Apply(Pw::kAnd, {arrays.Apply(Pw::kNot, {a}), b});
  return arrays.Apply(Pw::kOr, {only_a, only_b});
}

absl::StatusOr<HloValue> Function(const HloModule&, const HloInstruction& instruction,
                                  Operands operands, HloArrays& arrays) {
  const absl::Span<const PwInfo> rows = AllPointwise();
  const auto row =
      absl::c_find_if(rows, [&](const PwInfo& info) { return info.hlo == instruction.opcode; });
  const Pw fn = static_cast<Pw>(row - rows.begin());
  if (static_cast<int>(operands.size()) != Info(fn).arity)
    return WrongHlo(instruction, absl::StrCat("want ", Info(fn).arity, " operands"));
  for (const HloValue& operand : operands) {
    if (!(operand.shape == operands[0].shape))
      return WrongHlo(instruction, "want operands of one type and shape");
  }
  const HloType type = operands[0].shape.type;
  if (type == HloType::kPred) {
    switch (fn) {
      case Pw::kBitAnd:
      case Pw::kMul:
      case Pw::kMin:
        return arrays.Apply(Pw::kAnd, operands);
      case Pw::kBitOr:
      case Pw::kAdd:
      case Pw::kMax:
        return arrays.Apply(Pw::kOr, operands);
      case Pw::kBitNot:
        return arrays.Apply(Pw::kNot, operands);
      case Pw::kBitXor:
        return Xor(operands[0], operands[1], arrays);
      default:
        return UnsupportedHlo(instruction, "of pred");
    }
  }
  const bool is_float = IsFloatOf(operands[0]);
  if (Info(fn).of_bits && is_float) return WrongHlo(instruction, "want integers");
  if (Info(fn).float_only && !is_float) return UnsupportedHlo(instruction, "of integers");
  if (fn == Pw::kShiftRight && !IsSigned(*DTypeOf(type))) {
    // The first bit counts as a sign in any type. As many places are too many for both.
    const HloType with_sign = IntegerOfBits(BitsOf(type), /*is_signed=*/true);
    return arrays.BitCast(arrays.Apply(fn, {arrays.BitCast(operands[0], with_sign),
                                            arrays.BitCast(operands[1], with_sign)}),
                          type);
  }
  return arrays.Apply(fn, operands);
}

absl::StatusOr<HloValue> Compare(const HloModule&, const HloInstruction& instruction,
                                 Operands operands, HloArrays& arrays) {
  static constexpr std::pair<absl::string_view, Pw> kDirections[] = {
      {"EQ", Pw::kEq}, {"NE", Pw::kNe}, {"LT", Pw::kLt},
      {"LE", Pw::kLe}, {"GT", Pw::kGt}, {"GE", Pw::kGe}};
  ASSIGN_OR_RETURN(const absl::string_view direction, AttributeText(instruction, "direction"));
  const auto* row =
      absl::c_find_if(kDirections, [&](const auto& of) { return of.first == direction; });
  if (row == std::end(kDirections) || operands.size() != 2 ||
      !(operands[0].shape == operands[1].shape))
    return WrongHlo(instruction, "want two operands of one shape and a direction");
  if (const absl::string_view* type = instruction.Find("type");
      type != nullptr && *type == "TOTALORDER" && IsFloatOf(operands[0]))
    return UnsupportedHlo(instruction, "in total order");
  if (!IsPred(operands[0])) return arrays.Apply(row->second, operands);
  return arrays.Apply(row->second, {arrays.Cast(operands[0], HloType::kU8),
                                    arrays.Cast(operands[1], HloType::kU8)});
}

absl::StatusOr<HloValue> Select(const HloModule&, const HloInstruction& instruction,
                                Operands operands, HloArrays& arrays) {
  if (operands.size() != 3 || !IsPred(operands[0]) || !(operands[1].shape == operands[2].shape) ||
      (operands[0].shape.dims != operands[1].shape.dims && !operands[0].shape.dims.empty()))
    return WrongHlo(instruction, "want a pred and two operands of one shape");
  return arrays.Select(operands[0], operands[1], operands[2]);
}

absl::StatusOr<HloValue> Clamp(const HloModule&, const HloInstruction& instruction,
                               Operands operands, HloArrays& arrays) {
  if (operands.size() != 3) return WrongHlo(instruction, "want three operands");
  const HloType type = operands[1].shape.type;
  for (size_t i : {0, 2}) {
    if (operands[i].shape.type != type ||
        (!operands[i].shape.dims.empty() && operands[i].shape.dims != operands[1].shape.dims))
      return WrongHlo(instruction, "want limits of the operand's type, and its shape or scalars");
  }
  if (type == HloType::kPred) return UnsupportedHlo(instruction, "of pred");
  return arrays.Apply(Pw::kMin, {arrays.Apply(Pw::kMax, operands.first(2)), operands[2]});
}

absl::StatusOr<HloValue> Convert(const HloModule&, const HloInstruction& instruction,
                                 Operands operands, HloArrays& arrays) {
  if (operands.size() != 1) return WrongHlo(instruction, "want one operand");
  const HloType type = instruction.shape.type;
  if (!DTypeOf(type).has_value())
    return UnsupportedHlo(instruction, absl::StrCat("to ", Name(type)));
  return arrays.Convert(operands[0], type);
}

absl::StatusOr<HloValue> BitcastConvert(const HloModule&, const HloInstruction& instruction,
                                        Operands operands, HloArrays& arrays) {
  if (operands.size() != 1) return WrongHlo(instruction, "want one operand");
  const HloType from = operands[0].shape.type, to = instruction.shape.type;
  if (from == to) return operands[0];
  if (BitsOf(from) != BitsOf(to) || from == HloType::kPred || to == HloType::kPred)
    return UnsupportedHlo(instruction, absl::StrCat("from ", Name(from), " to ", Name(to)));
  return arrays.BitCast(operands[0], to);
}

/// How many bits are set: sums of neighbouring bits, of pairs of them, and so on.
HloValue BitsSet(const HloValue& a, HloArrays& arrays) {
  const DType dtype = *DTypeOf(a.shape.type);
  const auto every = [&](uint64_t of_byte) { return Wrapped(dtype, 0x0101010101010101 * of_byte); };
  const auto shifted = [&](const HloValue& of, int places) {
    return arrays.Apply(Pw::kShiftRightLogical, of, places);
  };
  HloValue sums = a;
  for (const auto& [places, of_byte] : {std::pair(1, 0x55), std::pair(2, 0x33), std::pair(4, 0x0f)})
    sums =
        arrays.Apply(Pw::kAdd, {arrays.Apply(Pw::kBitAnd, sums, every(of_byte)),
                                arrays.Apply(Pw::kBitAnd, shifted(sums, places), every(of_byte))});
  const int bits = BitsOf(a.shape.type);
  for (int places = 8; places < bits; places *= 2)
    sums = arrays.Apply(Pw::kAdd, {sums, shifted(sums, places)});
  return arrays.Apply(Pw::kBitAnd, sums, 0x7f);
}

absl::StatusOr<HloValue> CountBits(const HloModule&, const HloInstruction& instruction,
                                   Operands operands, HloArrays& arrays) {
  if (operands.size() != 1 || !IsInteger(*DTypeOf(operands[0].shape.type)))
    return WrongHlo(instruction, "want one operand of integers");
  if (instruction.opcode == "popcnt") return BitsSet(operands[0], arrays);
  // The leading zeros are what is left when every bit behind the first is set.
  HloValue set = operands[0];
  for (int places = 1; places < BitsOf(set.shape.type); places *= 2)
    set = arrays.Apply(Pw::kBitOr, {set, arrays.Apply(Pw::kShiftRightLogical, set, places)});
  return BitsSet(arrays.Apply(Pw::kBitNot, {set}), arrays);
}

struct FloatBits {
  int exponent = 0, mantissa = 0;
  int bias() const { return (1 << (exponent - 1)) - 1; }
};

FloatBits FloatBitsOf(HloType type) {
  switch (type) {
    case HloType::kF16:
      return {5, 10};
    case HloType::kBF16:
      return {8, 7};
    case HloType::kF32:
      return {8, 23};
    default:
      return {11, 52};
  }
}

/// A number of type `from`.
double Reduced(double a, const FloatBits& from, const FloatBits& to) {
  if (std::isnan(a) || std::isinf(a) || a == 0) return a;
  double result = a;
  if (to.mantissa < from.mantissa) {
    const int last = std::max(std::ilogb(a), 1 - from.bias()) - to.mantissa;
    result = std::ldexp(std::nearbyint(std::ldexp(a, -last)), last);
  }
  const FloatBits& narrower = to.exponent < from.exponent ? to : from;
  if (std::fabs(result) >= std::ldexp(1, narrower.bias()) * 2) return std::copysign(INFINITY, a);
  if (to.exponent < from.exponent && std::fabs(result) < std::ldexp(1, 1 - to.bias()))
    return std::copysign(0, a);
  return result;
}

/// As XLA does it: the mantissa is rounded to even in place, also of subnormal numbers; what is
/// subnormal in fewer bits of exponent becomes 0 of its sign, what is too large infinite.
absl::StatusOr<HloValue> ReducePrecision(const HloModule&, const HloInstruction& instruction,
                                         Operands operands, HloArrays& arrays) {
  ASSIGN_OR_RETURN(const int64_t exponent, IntegerOf(instruction, "exponent_bits"));
  ASSIGN_OR_RETURN(const int64_t mantissa, IntegerOf(instruction, "mantissa_bits"));
  if (operands.size() != 1 || !IsFloatOf(operands[0]))
    return WrongHlo(instruction, "want one operand of floats");
  if (exponent < 1 || mantissa < 0) return WrongHlo(instruction, "want a bit of exponent");
  if (mantissa == 0) return UnsupportedHlo(instruction, "to 0 bits of mantissa");
  const HloValue& a = operands[0];
  const HloType type = a.shape.type;
  if (BitsOf(type) == 8) return UnsupportedHlo(instruction, absl::StrCat("of ", Name(type)));
  const FloatBits from = FloatBitsOf(type),
                  to = {static_cast<int>(std::min<int64_t>(exponent, from.exponent)),
                        static_cast<int>(std::min<int64_t>(mantissa, from.mantissa))};
  if (a.number.has_value())
    return HloArrays::Constant(Reduced(a.number->real(), from, to), a.shape);
  if (type == HloType::kF32 && to.exponent == 8 && to.mantissa == 7)
    return arrays.Cast(arrays.Cast(a, HloType::kBF16), type);
  HloValue result = a;
  if (const int dropped = from.mantissa - to.mantissa; dropped > 0) {
    const HloType bits = BitsOf(type) == 16   ? HloType::kU16
                         : BitsOf(type) == 32 ? HloType::kU32
                                              : HloType::kU64;
    const HloValue old = arrays.BitCast(a, bits);
    const HloValue is_odd =
        arrays.Apply(Pw::kBitAnd, arrays.Apply(Pw::kShiftRightLogical, old, dropped), 1);
    const HloValue rounded = arrays.Apply(
        Pw::kAdd, {arrays.Apply(Pw::kAdd, old, std::ldexp(1, dropped - 1) - 1), is_odd});
    result = arrays.BitCast(
        arrays.Apply(Pw::kShiftLeft, arrays.Apply(Pw::kShiftRightLogical, rounded, dropped),
                     dropped),
        type);
  }
  if (to.exponent < from.exponent) {
    const HloValue magnitude = arrays.Apply(Pw::kAbs, {result});
    const double least = std::ldexp(1, 1 - to.bias()), most = std::ldexp(1, to.bias() + 1);
    const HloValue large = arrays.Apply(
        Pw::kSelect,
        {arrays.Apply(Pw::kGe, magnitude, most), arrays.Apply(Pw::kMul, result, INFINITY), result});
    result = arrays.Apply(Pw::kSelect, {arrays.Apply(Pw::kLt, magnitude, least),
                                        arrays.Apply(Pw::kMul, result, 0), large});
  }
  return arrays.Apply(Pw::kSelect, {arrays.Apply(Pw::kEq, {a, a}), result, a});  // NaN stays
}

absl::StatusOr<HloValue> IsFinite(const HloModule&, const HloInstruction& instruction,
                                  Operands operands, HloArrays& arrays) {
  if (operands.size() != 1 || !IsFloatOf(operands[0]))
    return WrongHlo(instruction, "want one operand of floats");
  return arrays.Apply(Pw::kLt, arrays.Apply(Pw::kAbs, operands),
                      std::numeric_limits<double>::infinity());
}

/// To the nearest integer, of two the one farther from 0.
absl::StatusOr<HloValue> RoundAway(const HloModule&, const HloInstruction& instruction,
                                   Operands operands, HloArrays& arrays) {
  if (operands.size() != 1 || !IsFloatOf(operands[0]))
    return WrongHlo(instruction, "want one operand of floats");
  // The fraction decides: adding a half would round.
  const HloValue magnitude = arrays.Apply(Pw::kAbs, operands),
                 whole = arrays.Apply(Pw::kFloor, {magnitude}),
                 fraction = arrays.Apply(Pw::kSub, {magnitude, whole});
  const HloValue up = arrays.Cast(arrays.Apply(Pw::kGe, fraction, 0.5), operands[0].shape.type);
  return arrays.Apply(Pw::kMul,
                      {arrays.Apply(Pw::kAdd, {whole, up}), arrays.Apply(Pw::kSign, operands)});
}

absl::StatusOr<HloValue> Cbrt(const HloModule&, const HloInstruction& instruction,
                              Operands operands, HloArrays& arrays) {
  if (operands.size() != 1 || !IsFloatOf(operands[0]))
    return WrongHlo(instruction, "want one operand of floats");
  const HloValue a = arrays.Cast(operands[0], HloType::kF64), size = arrays.Apply(Pw::kAbs, {a});
  HloValue root = arrays.Apply(Pw::kPow, size, 1.0 / 3);
  if (operands[0].shape.type == HloType::kF64) {
    // A step by Newton's method, since the exponent is not a third: y -= y (y^3 / a - 1) / 3.
    const HloValue cube = arrays.Apply(
        Pw::kMul, {arrays.Apply(Pw::kMul, {arrays.Apply(Pw::kDiv, {root, size}), root}), root});
    const HloValue part = arrays.Apply(Pw::kDiv, arrays.Apply(Pw::kSub, cube, 1), 3);
    const HloValue better = arrays.Apply(Pw::kSub, {root, arrays.Apply(Pw::kMul, {root, part})});
    const HloValue is_plain = arrays.Apply(Pw::kLt, arrays.Apply(Pw::kAbs, {part}), 1);
    root = arrays.Select(is_plain, better, root);
  }
  const HloValue signed_root = arrays.Apply(Pw::kMul, {root, arrays.Apply(Pw::kSign, {a})});
  return arrays.Cast(signed_root, operands[0].shape.type);
}

absl::StatusOr<HloValue> Tan(const HloModule&, const HloInstruction& instruction, Operands operands,
                             HloArrays& arrays) {
  if (operands.size() != 1 || !IsFloatOf(operands[0]))
    return WrongHlo(instruction, "want one operand of floats");
  return arrays.Apply(Pw::kDiv,
                      {arrays.Apply(Pw::kSin, operands), arrays.Apply(Pw::kCos, operands)});
}

}  // namespace

std::vector<HloRow> ElementwiseHlo() {
  std::vector<HloRow> rows = {
      {"compare", Compare},
      {"select", Select},
      {"clamp", Clamp},
      {"convert", Convert},
      {"bitcast-convert", BitcastConvert},
      {"popcnt", CountBits},
      {"count-leading-zeros", CountBits},
      {"reduce-precision", ReducePrecision},
      {"is-finite", IsFinite},
      {"round-nearest-afz", RoundAway},
      {"cbrt", Cbrt},
      {"tan", Tan},
  };
  for (const PwInfo& info : AllPointwise()) {
    if (!info.hlo.empty()) rows.push_back({info.hlo, Function});
  }
  return rows;
}

}  // namespace coconet
