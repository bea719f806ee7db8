#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coconet/hlo/testing/imported_results.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// What XLA on the CPU gives.
TEST(ImportHlo, ReducesPrecision) {
  const double inf = std::numeric_limits<double>::infinity();
  const struct {
    const char* type;
    int exponent, mantissa;
    double x, result;
  } kCases[] = {
      {"f32", 8, 7, 1 + 0x1p-8, 1},  // to even
      {"f32", 8, 7, 1 + 0x1.8p-8, 1 + 0x1p-7},
      {"f32", 8, 7, 0x1.ffp127, inf},
      {"f32", 8, 7, 0x1.2p-130, 0x1.2p-130},  // subnormal in both
      {"f32", 8, 7, 0x1.1p-130, 0x1p-130},
      {"f32", 5, 10, 65504, 65504},
      {"f32", 5, 10, 65520, inf},
      {"f32", 5, 10, -65520, -inf},
      {"f32", 5, 10, 0x1p-14, 0x1p-14},
      {"f32", 5, 10, 0x1.ffcp-15, 0},        // subnormal in f16
      {"f32", 5, 10, 0x1.fffp-15, 0x1p-14},  // rounds to a normal number
      {"f32", 5, 10, -0x1p-15, -0.0},
      {"f32", 8, 10, 1 + 0x1.8p-10, 1 + 0x1p-9},
      {"f32", 4, 3, 240, 240},
      {"f32", 4, 3, 248, inf},
      {"f32", 4, 3, 0x1.8p-7, 0},
      {"f32", 5, 2, 1.125, 1},
      {"f32", 5, 2, 1.375, 1.5},
      {"f32", 5, 2, 0x1p-15, 0},
      {"f32", 11, 52, 0x1.23p-140, 0x1.23p-140},
      {"f16", 8, 7, 0x1p-22, 0},  // a bit of its mantissa that is dropped
      {"f16", 8, 7, 0x1.8p-22, 0x1p-21},
      {"bf16", 5, 10, 1e5, inf},
      {"f64", 8, 23, 1 + 0x1p-40, 1},
      {"f64", 8, 23, 0x1p-140, 0},
      {"f64", 8, 7, 1e300, inf},
      {"f32", 5, 2, inf, inf},
  };
  for (const auto& c : kCases) {
    const std::string type = c.type;
    const std::string bits =
        absl::StrCat(", exponent_bits=", c.exponent, ", mantissa_bits=", c.mantissa);
    const std::string number = absl::StrFormat("%.17g", c.x);
    for (const bool is_constant : {true, false}) {
      // Casts are not rounded by the interpreter, but have a bound.
      if (!is_constant && type == "f32" && c.exponent == 8 && c.mantissa == 7) continue;
      const std::string text = absl::StrCat(
          "c = ", type, "[] constant(", number, ")\n x = ", type, "[2] parameter(0)\n i = ", type,
          "[2] multiply(x, x)\n b = ", type, "[2] broadcast(c), dimensions={}\n z = ", type,
          "[2] subtract(x, x)\n y = ", type, "[2] ", is_constant ? "copy(b)" : "add(b, z)",
          "\n ROOT r = ", type, "[2] reduce-precision(y)", bits);
      const std::vector<Number> result = Result(text);
      ASSERT_EQ(result.size(), 2u) << text;
      EXPECT_EQ(result[0], c.result) << text;
      EXPECT_EQ(std::signbit(result[0].real()), std::signbit(c.result)) << text;
    }
  }
}

TEST(ImportHlo, FoldsFloatsAsNumbersOfTheirType) {
  const struct {
    const char *type, *a, *opcode, *b;
    double result;
  } kCases[] = {
      {"f32", "1", "subtract", "-0.99999994", 2},  // as jax.random.normal has it
      {"f32", "0.1", "add", "0.2", 0x1.333334p-2},
      {"f32", "16777216", "add", "1", 16777216},
      {"f32", "0.1", "multiply", "10", 1},
      {"f32", "1e30", "multiply", "1e30", std::numeric_limits<double>::infinity()},
      {"f32", "1e-50", "add", "0", 0},
      {"f16", "2048", "add", "1", 2048},
      {"f16", "0.1", "multiply", "3", 0x1.33p-2},
      {"bf16", "0.1", "add", "0", 0x1.9ap-4},
      {"f64", "0.1", "add", "0.2", 0.1 + 0.2},
  };
  for (const auto& c : kCases) {
    const std::string text =
        absl::StrCat("a = ", c.type, "[] constant(", c.a, ")\n b = ", c.type, "[] constant(", c.b,
                     ")\n y = ", c.type, "[] ", c.opcode, "(a, b)\n ROOT r = ", c.type,
                     "[1] broadcast(y), dimensions={}");
    EXPECT_EQ(Result(text), std::vector<Number>{c.result}) << text;
  }
}

TEST(ImportHlo, HasEightBitFloats) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const struct {
    const char *type, *a;
    double result;
  } kCases[] = {
      {"f8e4m3fn", "17", 16},
      {"f8e4m3fn", "464", 448},
      {"f8e4m3fn", "0.001", 0x1p-10 * 2},
      {"f8e4m3fn", "-500", nan},
      {"f8e4m3fn", "inf", nan},
      {"f8e5m2", "-9", -8},
      {"f8e5m2", "61439", 57344},
      {"f8e5m2", "61440", std::numeric_limits<double>::infinity()},
  };
  for (const auto& c : kCases) {
    const std::string text =
        absl::StrCat("a = f32[] constant(", c.a, ")\n y = ", c.type,
                     "[] convert(a)\n z = f32[] convert(y)\n ROOT r = f32[1] broadcast(z), "
                     "dimensions={}");
    const std::vector<Number> result = Result(text);
    ASSERT_EQ(result.size(), 1u) << text;
    EXPECT_TRUE(result[0] == c.result || (result[0].is_nan() && std::isnan(c.result))) << text;
  }
  EXPECT_EQ(Result("x = f8e5m2[3,2] parameter(0)\n y = f8e5m2[2] parameter(1)\n ROOT r = f8e5m2[3] "
                   "dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
                .size(),
            3u);
}

TEST(ImportHlo, RefusesOtherEightBitFloatsAndTheirPrecision) {
  const auto refusal = [](const std::string& text) {
    return std::string(Import(Module(text)).status().message());
  };
  for (const char* type :
       {"f8e3m4", "f8e4m3", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2fnuz", "f8e8m0fnu"}) {
    const std::string text =
        absl::StrCat("x = ", type, "[2] parameter(0)\n ROOT r = ", type, "[2] add(x, x)");
    EXPECT_NE(refusal(text).find(type), std::string::npos) << refusal(text);
  }
  EXPECT_NE(refusal("x = f8e5m2[2] parameter(0)\n ROOT r = f8e5m2[2] reduce-precision(x), "
                    "exponent_bits=4, mantissa_bits=1")
                .find("of f8e5m2"),
            std::string::npos);
}

TEST(ImportHlo, ComparesConstantsAsNumbersOfTheirType) {
  const std::string text =
      "a = f32[] constant(0.1)\n b = f64[] constant(0.1)\n c = f64[] convert(a)\n"
      "s = pred[] compare(c, b), direction=EQ\n t = f32[] convert(b)\n"
      "u = pred[] compare(a, t), direction=EQ\n";
  const auto of = [&](const char* compared) {
    return Result(absl::StrCat(text, "p = u8[] convert(", compared,
                               ")\n ROOT r = u8[1] broadcast(p), dimensions={}"));
  };
  EXPECT_EQ(of("s"), std::vector<Number>{0});
  EXPECT_EQ(of("u"), std::vector<Number>{1});
}

TEST(ImportHlo, CubeRootsAreAsExactAsTheirType) {
  const struct {
    const char* type;
    double tolerance;
  } kTypes[] = {{"bf16", 4e-3}, {"f16", 5e-4}, {"f32", 6e-8}, {"f64", 3e-16}};
  for (const auto& [type, tolerance] : kTypes) {
    for (const double a : {8.0, -27.0, 1e-4, 60000.0, 1e-38, 1e38, 1e-300, 1e300, 0.0}) {
      const bool is_wide = type == std::string("f64"), is_narrow = type == std::string("f16");
      if (!is_wide && (std::fabs(a) > 1e39 || (a != 0 && std::fabs(a) < 1e-39))) continue;
      if (is_narrow && (std::fabs(a) > 65504 || (a != 0 && std::fabs(a) < 1e-4))) continue;
      const std::string text =
          absl::StrCat("a = ", type, "[] constant(", absl::StrFormat("%.17g", a), ")\n y = ", type,
                       "[] cbrt(a)\n ROOT r = ", type, "[1] broadcast(y), dimensions={}");
      const std::vector<Number> result = Result(text);
      ASSERT_EQ(result.size(), 1u) << text;
      EXPECT_NEAR(result[0].real(), std::cbrt(a), tolerance * std::fabs(std::cbrt(a))) << text;
    }
  }
}

}  // namespace
}  // namespace coconet
