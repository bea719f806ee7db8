#include "jit/expressions/folds.h"

#include "gtest/gtest.h"
#include "jit/storage/literal.h"

namespace coconet {
namespace {

// Doubles hold neither the greatest i64 nor the greatest u64.
TEST(Folds, BeginWithTheEndOfTheType) {
  const auto first = [](FoldKind kind, DType dtype) {
    return Literal(FirstOfFold(kind, dtype), dtype);
  };
  EXPECT_EQ(first(FoldKind::kMin, DType::kI64), "9223372036854775807ll");
  EXPECT_EQ(first(FoldKind::kMin, DType::kU64), "18446744073709551615ull");
  EXPECT_EQ(first(FoldKind::kMax, DType::kI64), "(-9223372036854775807ll - 1)");
  EXPECT_EQ(first(FoldKind::kMax, DType::kU64), "0ull");
  EXPECT_EQ(first(FoldKind::kMin, DType::kI8), "127");
  EXPECT_EQ(first(FoldKind::kMax, DType::kU16), "0");
  EXPECT_EQ(first(FoldKind::kMin, DType::kF32), "(1.0f / 0.0f)");
  EXPECT_EQ(first(FoldKind::kMax, DType::kBF16), "(-1.0f / 0.0f)");
  EXPECT_EQ(first(FoldKind::kSum, DType::kU64), "0ull");
}

}  // namespace
}  // namespace coconet
