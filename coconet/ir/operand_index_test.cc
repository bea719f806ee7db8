#include "coconet/ir/operand_index.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kDeclarations[] = R"(coconet 1
input x : f8e4m3[M, 256] replicated
input rows : f8e4m3[M, 256] sliced(0)
input columns : f8e4m3[M, 256] sliced(1)
input w : f8e5m2[384, 256] replicated
input w.columns : f8e5m2[384, 256] sliced(1)
input of_rows : f32[M, 2] replicated
input of_sliced_rows : f32[M, 2] sliced(0)
input of_sliced_blocks : f32[1, 2] sliced(1)
input of_local : f32[1, 1] local
input of_blocks : f32[3, 2] replicated
input of_columns : f32[3, 2] sliced(1)
input fifths : f32[M, 5] replicated
input symbols : f32[S, T] replicated
input vector : f32[2] replicated
input halves : f16[M, 2] replicated
input wide : f32[M, 256] replicated
input one : f32[1, 1] replicated
)";

/// Type of an expression over the declarations, or the error without its line and operation.
std::string TypeOf(const std::string& expression) {
  const absl::StatusOr<Graph> g = Parse(absl::StrCat(kDeclarations, "output y = ", expression));
  if (g.ok()) return Text(InferTypes(*g)->back());
  const std::string message(g.status().message());
  const size_t operation = message.find("): ");
  return operation == std::string::npos ? message : message.substr(operation + 3);
}

TEST(Scales, GiveAProductOfF32) {
  for (const char* scales : {"of_rows, of_blocks", "one, of_blocks", "symbols, one"}) {
    EXPECT_EQ(TypeOf(absl::StrCat("matmul(x, w, ", scales, ", transpose_b)")),
              "f32[M, 384] replicated")
        << scales;
  }
  EXPECT_EQ(TypeOf("matmul(x, x, of_rows, of_rows, transpose_a)"), "f32[256, 256] replicated");
}

TEST(Scales, AreSlicedAsTheirOperandIs) {
  const auto product = [](const std::string& a, const std::string& b) {
    return TypeOf(absl::StrCat("matmul(", a, ", ", b, ", transpose_b)"));
  };
  EXPECT_EQ(product("rows, w", "of_sliced_rows, of_blocks"), "f32[M, 384] sliced(0)");
  EXPECT_EQ(product("rows, w", "of_local, of_blocks"), "f32[M, 384] sliced(0)");
  EXPECT_EQ(product("x, w", "of_local, of_blocks"), "f32[M, 384] local");
  EXPECT_EQ(product("columns, w.columns", "of_sliced_blocks, of_columns"), "f32[M, 384] local");
  EXPECT_EQ(product("columns, w.columns", "one, of_columns"), "f32[M, 384] local");
  EXPECT_EQ(product("rows, w", "of_rows, of_blocks"),
            "want scales that are sliced as the operand is, have of_rows : f32[M, 2] replicated "
            "for rows : f8e4m3[M, 256] sliced(0); use shard");
  EXPECT_THAT(product("x, w", "of_sliced_rows, of_blocks"),
              HasSubstr("want scales that are not sliced, since each rank needs all of them, have "
                        "of_sliced_rows : f32[M, 2] sliced(0) for x"));
  EXPECT_THAT(product("columns, w.columns", "of_sliced_rows, of_columns"),
              HasSubstr("want scales that are sliced as the operand is"));
}

TEST(Scales, OfOtherShapesAndTypesAreRefused) {
  const auto product = [](const std::string& operands) {
    return TypeOf(absl::StrCat("matmul(", operands, ", transpose_b)"));
  };
  EXPECT_THAT(product("x, w, of_rows"),
              HasSubstr("want scales of both operands or of neither, have x"));
  EXPECT_THAT(product("wide, wide, of_rows, of_rows"),
              HasSubstr("want scales of operands of f8e4m3 or f8e5m2 each, have wide : f32[M, 256] "
                        "replicated, wide : f32[M, 256] replicated, of_rows"));
  EXPECT_THAT(product("wide, wide, of_rows, of_rows"), HasSubstr("; use cast and multiply"));
  EXPECT_THAT(product("x, w, halves, of_blocks"),
              HasSubstr("want scales in f32, have halves : f16[M, 2] replicated for x"));
  for (const char* scales : {"fifths", "vector", "of_blocks, transpose_a"}) {
    EXPECT_THAT(product(absl::StrCat("x, w, one, ", scales)),
                testing::Not(HasSubstr("f32[M, 384]")))
        << scales;
  }
  EXPECT_THAT(
      product("x, w, fifths, of_blocks"),
      HasSubstr("want scales with an extent for each of the operand's that divides it, have "
                "fifths : f32[M, 5] replicated for x : f8e4m3[M, 256] replicated"));
}

TEST(Scales, OfSymbolsDivideWhenTheseAreBound) {
  const absl::StatusOr<Graph> g = Parse(
      "coconet 1\ninput x : f8e4m3[M, K] replicated\ninput s : f32[M, L] replicated\n"
      "output y = matmul(x, x, s, s, transpose_b)\n");
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_TRUE(BindSizes(*g, {{"M", 3}, {"K", 12}, {"L", 4}}).ok());
  for (int64_t scales : {0, 1})
    EXPECT_TRUE(BindSizes(*g, {{"M", 3}, {"K", 0}, {"L", scales}}).ok());
  for (const auto& [k, scales] : {std::pair(12, 5), {12, 0}, {12, 24}, {0, 2}}) {
    EXPECT_THAT(BindSizes(*g, {{"M", 3}, {"K", k}, {"L", scales}}).status().message(),
                HasSubstr("want scales with an extent for each"))
        << k << " " << scales;
  }
}

TEST(Scales, OfSlicesAreOfWholeBlocks) {
  const absl::StatusOr<Graph> g = Parse(
      "coconet 1\ninput x : f8e4m3[3, 30] sliced(1)\ninput s : f32[1, 6] sliced(1)\n"
      "output y = matmul(x, x, s, s, transpose_b)\n");
  ASSERT_TRUE(g.ok()) << g.status();
  for (int ranks : {1, 2, 3, 6}) EXPECT_TRUE(CheckRuns(*g, ranks).ok()) << ranks;
  const absl::Status refused = CheckRuns(*g, 4);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused.message(),
            "matmul(x, x, s, s, transpose_b): want slices that end where blocks of 5 along "
            "dimension 1 do, have "
            "slices of 8 of x : f8e4m3[3, 30] sliced(1), with scales s : f32[1, 6] sliced(1), on 4 "
            "ranks; use a number of ranks, or an extent, of which each rank has whole blocks");
}

TEST(Scales, OfListsAreCheckedByTensor) {
  const absl::StatusOr<Graph> g = Parse(
      "coconet 1\ninput x : f8e4m3[3, N] sliced(1)\ninput s : f32[1, L] sliced(1)\n"
      "output y = matmul(x, x, s, s, transpose_b)\n");
  ASSERT_TRUE(g.ok()) << g.status();
  const absl::StatusOr<Graph> bound = BindSizes(*g, {{"N", {30, 20}}, {"L", {6, 4}}});
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_TRUE(CheckRuns(*bound, 2).ok());
  EXPECT_THAT(CheckRuns(*bound, 3).message(),
              HasSubstr("tensor 1: matmul(x, x, s, s, transpose_b): want"));
  EXPECT_FALSE(BindSizes(*g, {{"N", {30, 20}}, {"L", {6, 3}}}).ok());
}

TEST(Scales, KnowTheirBlocks) {
  EXPECT_THAT(BlocksOf({6, 4, 0, 1}, {3, 4, 1, 1}), ElementsAre(2, 1, 1, 1));
  const Shape operand = {4, 3, 8, 8}, scales = {2, 3, 1, 8};
  EXPECT_EQ(ScalesOfMatrix(operand, scales, 0), 0);
  EXPECT_EQ(ScalesOfMatrix(operand, scales, 5), 2);   // (1, 2)
  EXPECT_EQ(ScalesOfMatrix(operand, scales, 10), 4);  // (3, 1)
}

/// OwnMatrixDims as "begin to end"; "none" where it has nothing.
std::string Own(const std::vector<int64_t>& product, const std::vector<int64_t>& operand) {
  const std::optional<DimRange> own = OwnMatrixDims(product, operand);
  return own.has_value() ? absl::StrCat(own->begin, " to ", own->end) : "none";
}

TEST(OwnMatrixDims, AreNeighbours) {
  EXPECT_EQ(Own({}, {}), "0 to 0");
  EXPECT_EQ(Own({2, 3}, {}), "0 to 0");
  EXPECT_EQ(Own({2, 3}, {2, 3}), "0 to 2");
  EXPECT_EQ(Own({2, 3}, {2, 1}), "0 to 1");
  EXPECT_EQ(Own({2, 3}, {1, 3}), "1 to 2");
  EXPECT_EQ(Own({2, 3}, {3}), "1 to 2");
  EXPECT_EQ(Own({2, 5, 3}, {2, 1, 3}), "none");
  EXPECT_EQ(Own({2, 1, 3}, {2, 1, 3}), "0 to 3");
  EXPECT_EQ(Own({1, 2, 5, 3}, {1, 2, 1, 1}), "1 to 2");
  EXPECT_EQ(Own({2, 5, 3, 4}, {5, 3, 1}), "1 to 3");
}

}  // namespace
}  // namespace coconet
