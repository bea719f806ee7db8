// The elementwise functions and casts of the host's kernel dialect, on every compiler and every
// level of machine features that is here. What differs from the reference semantics of the language
// is a bug of the prelude or of a row of the elementwise table.

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/ir/op_table.h"
#include "gtest/gtest.h"
#include "tests/harness/sample.h"
#include "tests/harness/test_data.h"
#include "tests/kernels/dialect.h"

namespace coconet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One in so many functions and casts is tried with each toolchain.
constexpr uint64_t kOneIn = 4;

class DialectFunctionsTest : public testing::TestWithParam<DialectToolchain> {
 protected:
  /// Whether a kernel is tried; which ones differs from toolchain to toolchain and from run to run.
  static bool Takes(const ElementwiseKernel& kernel) {
    static const uint64_t seed = FreshSeed();
    const std::string name = absl::StrCat(testing::PrintToString(GetParam()), kernel.name);
    return TakesName(OneInFlag(kOneIn), seed, name);
  }

  static const DialectModule& Module() {
    std::string text;
    for (const auto& kernels : {PointwiseKernels(), CastKernels()}) {
      for (const ElementwiseKernel& kernel : kernels) {
        if (Takes(kernel)) text += KernelText(kernel);
      }
    }
    return CompiledOnce(GetParam(), text);
  }
};

std::vector<Number> Interesting(DType dtype) {
  if (!IsFloat(dtype)) {
    std::vector<Number> values = {0, 1, 2, 3, 7, 50, 100, 127};
    for (int64_t value : {-1, -2, -3, -7, -50, -128, 128, 200, 255, 46340, -32768, 65535, 65537}) {
      if (Stored(dtype, value) == value) values.push_back(value);
    }
    for (const Number& value :
         {Number(INT32_MAX), Number(INT32_MIN), Number(UINT32_MAX), Number((int64_t{1} << 53) + 1),
          Number(INT64_MAX), Number(INT64_MIN), Number(UINT64_MAX)}) {
      if (Stored(dtype, value) == value) values.push_back(value);
    }
    return values;
  }
  std::vector<Number> values = {0,         -0.0,       1,    -1,    0.5,  -0.5, 1.5,  2,    3,
                                -3,        7.25,       10,   -10,   100,  -100, 1e-3, 1e-8, 65504,
                                kInfinity, -kInfinity, kNaN, 1e-30, 1e30, -20,  88,   -88};
  values.push_back(MinSubnormal(dtype));
  values.push_back(MaxFinite(dtype));
  std::mt19937 random(7);
  for (int i = 0; i < 20; ++i)
    values.push_back((static_cast<int>(random() % 20001) - 10000) / 1024.0);
  return values;
}

struct Operands {
  std::vector<Column> columns;
  std::vector<const Column*> pointers() const {
    std::vector<const Column*> out;
    for (const Column& column : columns) out.push_back(&column);
    return out;
  }
};

/// All combinations of interesting values, repeated so that every one is seen by the packs and by
/// the tail.
Operands AllCombinations(const ElementwiseKernel& kernel) {
  std::vector<std::vector<Number>> columns(kernel.operands.size());
  std::vector<std::vector<Number>> choices;
  for (DType dtype : kernel.operands)
    choices.push_back(dtype == DType::kBool ? std::vector<Number>{0, 1} : Interesting(dtype));
  size_t combinations = 1;
  for (const auto& c : choices) combinations *= c.size();
  for (size_t n = 0; n < combinations; ++n) {
    size_t rest = n;
    for (size_t k = 0; k < choices.size(); ++k) {
      columns[k].push_back(choices[k][rest % choices[k].size()]);
      rest /= choices[k].size();
    }
  }
  while (columns[0].size() % 64 != 63) {
    for (auto& column : columns) column.push_back(column[column.size() % combinations]);
  }
  Operands operands;
  for (size_t k = 0; k < choices.size(); ++k)
    operands.columns.emplace_back(kernel.operands[k], columns[k]);
  return operands;
}

/// "" when `have` is a correct result of fn(args).
std::string Wrong(Pw fn, DType dtype, const Number* args, const Number& result) {
  const PwInfo& info = Info(fn);
  const Number exact = EvalPointwise(fn, dtype, args);
  if (info.result == PwResult::kBool || !IsFloat(dtype))
    return result == exact ? "" : absl::StrCat("want ", NumberText(exact));
  double reals[3];
  for (int i = 0; i < info.arity; ++i) reals[i] = args[i].real();
  const double want = exact.real(), have = result.real();
  const bool narrow = UnitRoundoff(dtype) > UnitRoundoff(DType::kF32);
  const double computed = UnitRoundoff(narrow ? DType::kF32 : dtype);
  const double magnitude = info.magnitude == nullptr ? std::fabs(want) : info.magnitude(reals);
  const double error = magnitude * (info.ulps * computed + (narrow ? UnitRoundoff(dtype) : 0)) +
                       info.ulps * MinSubnormal(dtype);
  if (std::isnan(want)) return std::isnan(have) ? "" : "want NaN";
  // Beyond the largest number everything is infinite, at its edge perhaps; NaN without infinities.
  const bool is_beyond =
      HasInfinity(dtype) ? std::isinf(have) && (want > 0) == (have > 0) : std::isnan(have);
  if (std::fabs(want) > MaxFinite(dtype) && is_beyond) return "";
  if (!std::isfinite(error))
    return (HasInfinity(dtype) ? std::isinf(have) : std::isnan(have)) ? "" : "want infinity";
  return std::fabs(have - want) <= error || have == want
             ? ""
             : absl::StrCat("want ", want, " +- ", error);
}

TEST_P(DialectFunctionsTest, ElementwiseFunctionsKeepTheirTablesBounds) {
  for (const ElementwiseKernel& kernel : PointwiseKernels()) {
    if (!Takes(kernel)) continue;
    // NAME_DTYPE_LANES
    const size_t lanes_at = kernel.name.rfind('_'), dtype_at = kernel.name.rfind('_', lanes_at - 1);
    const Pw fn = FindPointwise(kernel.name.substr(0, dtype_at)).value();
    const DType dtype = kernel.operands.back();
    const Operands operands = AllCombinations(kernel);
    Column out(kernel.result, operands.columns[0].size());
    Module().Run(kernel, operands.pointers(), out);
    for (int64_t i = 0; i < out.size(); ++i) {
      Number args[3];
      for (size_t k = 0; k < operands.columns.size(); ++k) args[k] = operands.columns[k][i];
      const std::string wrong = Wrong(fn, dtype, args, out[i]);
      ASSERT_EQ(wrong, "") << kernel.name << "(" << NumberText(args[0]) << ", "
                           << NumberText(args[1]) << ", " << NumberText(args[2])
                           << ") = " << NumberText(out[i]);
    }
  }
}

/// What an integer type cannot hold has no defined value.
bool Holds(DType dtype, const Number& value) {
  if (IsFloat(dtype) || dtype == DType::kBool) return true;
  const Number whole = value.is_integer() ? value : std::trunc(value.real());
  return Stored(dtype, whole) == whole;
}

/// Numbers next to the middle of two of f16 or bf16, some of them nearer to it than a float tells.
std::vector<Number> NearMiddles(DType dtype) {
  std::vector<Number> values;
  for (const int bits : {8, 11}) {
    for (int exponent = 0; exponent < 64; ++exponent) {
      const double middle = std::ldexp(1 + std::ldexp(1, -bits), exponent);
      for (const int sign : {-1, 1}) {
        for (const int step : {-1, 0, 1}) {
          const absl::int128 integer = sign * (absl::int128(middle) + step);
          if (IsInteger(dtype) && Wrapped(dtype, integer).integer() == integer)
            values.push_back(Wrapped(dtype, integer));
          const double near = sign * std::nextafter(middle, step * kInfinity);
          if (dtype == DType::kF64) values.push_back(step == 0 ? sign * middle : near);
        }
      }
    }
  }
  return values;
}

TEST_P(DialectFunctionsTest, CastsLikeTheReference) {
  for (DType from : kAllDTypes) {
    std::vector<Number> values =
        from == DType::kBool ? std::vector<Number>{0, 1} : Interesting(from);
    for (const Number& value : NearMiddles(from)) values.push_back(value);
    while (values.size() % 16 != 15) values.push_back(values[values.size() / 2]);
    const Column in(from, values);
    for (DType to : kAllDTypes) {
      if (!Takes(CastKernel(from, to))) continue;
      Column out(to, in.size());
      Module().Run(CastKernel(from, to), {&in}, out);
      for (int64_t i = 0; i < in.size(); ++i) {
        if (!Holds(to, in[i])) continue;
        const Number want = Stored(to, in[i]);
        const bool same = out[i] == want || (out[i].is_nan() && want.is_nan());
        ASSERT_TRUE(same) << Name(to) << " of " << Name(from) << " " << NumberText(in[i])
                          << ": want " << NumberText(want) << ", have " << NumberText(out[i]);
      }
    }
  }
}

TEST_P(DialectFunctionsTest, BitCastsLikeTheReference) {
  for (DType from : kAllDTypes) {
    if (from == DType::kBool) continue;
    std::vector<Number> values = Interesting(from);
    while (values.size() % 16 != 15) values.push_back(values[values.size() / 2]);
    const Column in(from, values);
    for (DType to : kAllDTypes) {
      if (!AreBitCast(from, to) || !Takes(BitCastKernel(from, to))) continue;
      Column out(to, in.size());
      Module().Run(BitCastKernel(from, to), {&in}, out);
      for (int64_t i = 0; i < in.size(); ++i) {
        if (in[i].is_nan()) continue;  // with any bits
        const Number want = BitCastElement(from, to, in[i]);
        ASSERT_TRUE(out[i] == want || (out[i].is_nan() && want.is_nan()))
            << Name(to) << " of " << Name(from) << " " << NumberText(in[i]) << ": want "
            << NumberText(want) << ", have " << NumberText(out[i]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DialectFunctionsTest, testing::ValuesIn(Toolchains()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace coconet
