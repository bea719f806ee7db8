#include "jit/storage/literal.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace coconet {
namespace {

TEST(Literal, IsExactInItsType) {
  EXPECT_EQ(Literal(0.9, DType::kF32), "0.899999976f");
  EXPECT_EQ(Literal(1, DType::kF32), "1.0f");
  EXPECT_EQ(Literal(-2, DType::kBF16), "(-2.0f)");
  EXPECT_EQ(Literal(1e-8, DType::kF64), "1e-08");
  EXPECT_EQ(std::stod(Literal(0.1, DType::kF64)), 0.1);
  EXPECT_EQ(Literal(0x4000004000000001, DType::kF32), "4.61168657e+18f");  // rounded once
  EXPECT_EQ(Literal(7, DType::kI64), "7ll");
  EXPECT_EQ(Literal(-7, DType::kI32), "(-6 - 1)");
  EXPECT_EQ(Literal(3, DType::kBool), "1");
}

TEST(Literal, HasWordsForWhatCppHasNot) {
  EXPECT_EQ(Literal(std::numeric_limits<double>::infinity(), DType::kF32), "(1.0f / 0.0f)");
  EXPECT_EQ(Literal(-std::numeric_limits<double>::infinity(), DType::kF64), "(-1.0 / 0.0)");
  EXPECT_EQ(Literal(std::nan(""), DType::kF32), "(0.0f / 0.0f)");
  EXPECT_EQ(Literal(1e300, DType::kF32), "(1.0f / 0.0f)");
  EXPECT_EQ(Literal(-0x1p63, DType::kI64), "(-9223372036854775807ll - 1)");
  EXPECT_EQ(Literal(-0x1p31, DType::kI32), "(-2147483647 - 1)");
}

}  // namespace
}  // namespace coconet
