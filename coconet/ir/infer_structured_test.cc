#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr char kDeclarations[] = R"(coconet 1
input local : f32[B, S, H] local
input rep : f32[B, S, H] replicated
input rows : f32[B, S, H] sliced(1)
input cols : f32[B, S, H] sliced(2)
input flat : f32[B, S, H] sliced(flat)
input int : i32[S, H] replicated
input half : f16[S, H] replicated
input vector : f32[H] replicated
input w : f32[H, K] replicated
input w.rows : f32[H, K] sliced(0)
input w.cols : f32[H, K] sliced(1)
input w.t : f32[K, H] replicated
input q : f32[B, S, H] replicated
input heads : f32[B, S, H] sliced(0)
input int.rows : i32[S, H] sliced(0)
input int.flat : i32[S, H] sliced(flat)
input int.local : i32[S, H] local
input seed : i64[]
input lr : f32[]
input bags : i32[B, L] replicated
input bags.lead : i32[B, T, L] replicated
input ids : i32[M] replicated
input offsets : i32[T] replicated
input weights : f32[M] replicated
)";

/// Type of an expression over the declarations, or the error without its line and operation.
std::string TypeOf(const std::string& expression) {
  absl::StatusOr<Graph> g = Parse(absl::StrCat(kDeclarations, "output y = ", expression, "\n"));
  if (g.ok()) return Text(InferTypes(*g)->back());
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(g.status().message());
  const size_t operation = message.find("): ");
  return operation == std::string::npos ? message : message.substr(operation + 3);
}

TEST(InferFold, DimensionsBecomeOne) {
  EXPECT_EQ(TypeOf("sum(rep, 2)"), "f32[B, S, 1] replicated");
  EXPECT_EQ(TypeOf("mean(local, 0, 1)"), "f32[1, 1, H] local");
  EXPECT_EQ(TypeOf("amax(rep, H)"), "f32[B, S, 1] replicated");  // by the name of its extent
  EXPECT_EQ(TypeOf("amin(rep)"), "f32[] replicated");
  EXPECT_EQ(TypeOf("sum(rep, 2, 0, 1)"), "f32[] replicated");
  EXPECT_EQ(TypeOf("sum(int, 0)"), "i32[1, H] replicated");
}

TEST(InferFold, OfSlicesIsWhatEachRankContributes) {
  EXPECT_EQ(TypeOf("sum(rows)"), "f32[] local");
  EXPECT_EQ(TypeOf("sum(flat)"), "f32[] local");
  EXPECT_EQ(TypeOf("sum(rows, 1)"), "f32[B, 1, H] local");
  EXPECT_EQ(TypeOf("sum(rows, 2)"), "f32[B, S, 1] sliced(1)");
  EXPECT_EQ(TypeOf("rows - mean(rows, 2)"), "f32[B, S, H] sliced(1)");
  EXPECT_EQ(TypeOf("rows * sum(rows)"), "f32[B, S, H] sliced(1)");  // by the sum of its own part
  EXPECT_EQ(TypeOf("rows * all_reduce(sum, sum(rows))"), "f32[B, S, H] sliced(1)");
}

TEST(InferFold, Refuses) {
  EXPECT_EQ(
      TypeOf("sum(flat, 2)"),
      "rows of an operand sliced flat lie on several ranks, have flat : f32[B, S, H] sliced(flat)");
  EXPECT_EQ(
      TypeOf("sum(rep, 3)"),
      "want different dimensions below 3 in ascending order, have rep : f32[B, S, H] replicated");
  EXPECT_EQ(
      TypeOf("sum(rep, 1, 1)"),
      "want different dimensions below 3 in ascending order, have rep : f32[B, S, H] replicated");
  // As many dimensions as the operand has, but not all of them.
  EXPECT_EQ(
      TypeOf("sum(vector, 3)"),
      "want different dimensions below 1 in ascending order, have vector : f32[H] replicated");
  EXPECT_EQ(
      TypeOf("sum(int, 0, 0)"),
      "want different dimensions below 2 in ascending order, have int : i32[S, H] replicated");
  EXPECT_EQ(TypeOf("amax(lr, 0)"), "want a tensor, have lr : f32[] replicated");
  EXPECT_EQ(TypeOf("mean(int)"), "want floats, have int : i32[S, H] replicated; use cast");
  EXPECT_EQ(TypeOf("sum(rep > 0)"),
            "want numbers, have gt(rep, const(0, f32)) : bool[B, S, H] replicated");
  EXPECT_TRUE(
      absl::StrContains(TypeOf("sum(rep, K)"), "expected a dimension of [B, S, H], found 'K'"));
}

TEST(InferViews, OfSlicesLeaveTheSlicedDimensionWhole) {
  EXPECT_EQ(TypeOf("transpose(rows, 1, 0, 2)"), "f32[S, B, H] sliced(0)");
  EXPECT_EQ(TypeOf("transpose(cols, 0, 2, 1)"), "f32[B, H, S] sliced(1)");
  EXPECT_EQ(TypeOf("transpose(flat, 0, 1, 2)"), "f32[B, S, H] sliced(flat)");
  EXPECT_EQ(TypeOf("slice(rows, 2, 1, 5)"), "f32[B, S, 4] sliced(1)");
  EXPECT_EQ(TypeOf("slice(cols, 0, 1, 5)"), "f32[4, S, H] sliced(2)");
  EXPECT_EQ(TypeOf("reshape(cols, [S, B, H])"), "f32[S, B, H] sliced(2)");
  EXPECT_EQ(TypeOf("reshape(rows, [1, B, S, H])"), "f32[1, B, S, H] sliced(2)");
  EXPECT_EQ(TypeOf("reshape(heads, [B, H, S])"), "f32[B, H, S] sliced(0)");
  EXPECT_EQ(TypeOf("reshape(flat, [S, B, H])"), "f32[S, B, H] sliced(flat)");
  EXPECT_EQ(TypeOf("reshape(shard(vector, 0), [1, H])"), "f32[1, H] sliced(1)");
  EXPECT_EQ(TypeOf("reshape(reshape(heads, [B, 1, S, H]), [B, S, H])"), "f32[B, S, H] sliced(0)");
}

TEST(InferViews, RepeatAndTurnElements) {
  EXPECT_EQ(TypeOf("expand(vector, [B, S, H])"), "f32[B, S, H] replicated");
  EXPECT_EQ(TypeOf("expand(sum(rep, 1), [4, B, S, H])"), "f32[4, B, S, H] replicated");
  EXPECT_EQ(TypeOf("expand(lr, [3])"), "f32[3] replicated");
  EXPECT_EQ(TypeOf("expand(rows, [2, B, S, H])"), "f32[2, B, S, H] sliced(2)");
  EXPECT_EQ(TypeOf("expand(flat, [B, S, H])"), "f32[B, S, H] sliced(flat)");
  EXPECT_EQ(TypeOf("expand(sum(rows, 2), [B, S, 5])"), "f32[B, S, 5] sliced(1)");
  EXPECT_EQ(TypeOf("expand(rep, [S, H])"),
            "want a shape to which rep : f32[B, S, H] replicated broadcasts, have [S, H]");
  EXPECT_EQ(TypeOf("expand(vector, [H, 1])"),
            "want a shape to which vector : f32[H] replicated broadcasts, have [H, 1]");
  EXPECT_TRUE(absl::StrContains(TypeOf("expand(flat, [2, B, S, H])"),
                                "cannot be broadcast along the dimension over which it is sliced"));
  EXPECT_EQ(TypeOf("reverse(rows, 0, H)"), "f32[B, S, H] sliced(1)");
  EXPECT_EQ(TypeOf("reverse(local, 1)"), "f32[B, S, H] local");
  EXPECT_EQ(TypeOf("reverse(rep)"), "want one or more dimensions below 3, each once");
  EXPECT_EQ(TypeOf("reverse(rep, 1, 1)"), "want one or more dimensions below 3, each once");
  for (const char* sliced : {"rows", "flat"}) {
    EXPECT_TRUE(absl::StrContains(TypeOf(absl::StrCat("reverse(", sliced, ", 1)")),
                                  "want dimensions over which the operand is not sliced"));
  }
}

TEST(InferViews, JoinTensorsThatDifferInOneDimension) {
  EXPECT_EQ(TypeOf("concat(rep, 1)"), "f32[B, S, H] replicated");
  EXPECT_EQ(TypeOf("concat(rep, rep, 1)"), "f32[B, 2*S, H] replicated");
  EXPECT_EQ(TypeOf("concat(rep, slice(rep, 2, 0, 3), 2)"), "f32[B, S, H + 3] replicated");
  EXPECT_EQ(TypeOf("concat(vector, slice(vector, 0, 2, 2), vector[0:4], 0)"),
            "f32[H + 4] replicated");
  EXPECT_EQ(TypeOf("concat(rep, local, 0)"), "f32[2*B, S, H] local");
  EXPECT_EQ(TypeOf("concat(rows, rows, 0)"), "f32[2*B, S, H] sliced(1)");
  EXPECT_EQ(TypeOf("concat(local, cols, rep, 1)"), "f32[B, 3*S, H] sliced(2)");
  EXPECT_EQ(TypeOf("reshape(concat(vector, vector, 0), [2*H])"), "f32[2*H] replicated");
  EXPECT_EQ(TypeOf("concat(rep, rep, 2) + concat(rep, rep, 2)"), "f32[B, S, 2*H] replicated");
}

TEST(InferViews, RefuseToJoin) {
  EXPECT_EQ(TypeOf("concat(rows, rep, 1)"),
            "want operands that are sliced over other dimensions than the one that is joined, have "
            "rows : f32[B, S, H] sliced(1); use all_to_all or all_gather");
  EXPECT_EQ(TypeOf("concat(flat, flat, 1)"),
            "want operands that are sliced over other dimensions than the one that is joined, have "
            "flat : f32[B, S, H] sliced(flat); use all_to_all or all_gather");
  EXPECT_EQ(TypeOf("concat(rows, cols, 0)"),
            "want operands that are sliced alike, have rows : f32[B, S, H] sliced(1) and cols : "
            "f32[B, S, H] sliced(2)");
  EXPECT_EQ(TypeOf("concat(rep, vector, 0)"),
            "want shapes that differ in dimension 0 only, have rep : f32[B, S, H] replicated and "
            "vector : f32[H] replicated");
  EXPECT_EQ(TypeOf("concat(rep, rep[0:2], 1)"),
            "want shapes that differ in dimension 1 only, have rep : f32[B, S, H] replicated and "
            "slice(rep, 0, 0, 2) : f32[2, S, H] replicated");
  EXPECT_EQ(TypeOf("concat(vector, cast(f16, vector), 0)"),
            "want operands of one dtype, have vector : f32[H] replicated and cast(f16, vector) : "
            "f16[H] replicated; use cast");
  EXPECT_EQ(TypeOf("concat(vector, vector, 1)"), "want a dimension below 1, have 1");
  EXPECT_EQ(TypeOf("concat(vector, vector, flat)"), "want a dimension below 1, have flat");
  EXPECT_EQ(TypeOf("concat(lr, lr, 0)"),
            "want tensors, have lr : f32[] replicated and lr : f32[] replicated; reshape scalars "
            "to [1]");
}

TEST(InferNumbers, ExtentsAreOfTheWholeTensorAndRanksAreLocal) {
  EXPECT_EQ(TypeOf("extent(f32, rows, 1)"), "f32[] replicated");
  EXPECT_EQ(TypeOf("extent(i64, local, H)"), "i64[] replicated");
  EXPECT_EQ(TypeOf("rows * extent(f32, rows, S)"), "f32[B, S, H] sliced(1)");
  EXPECT_EQ(TypeOf("count(u8, [5, 51])"), "u8[] replicated");
  EXPECT_EQ(TypeOf("rank(i32)"), "i32[] local");
  EXPECT_EQ(TypeOf("rep * rank(f32)"), "f32[B, S, H] local");
  EXPECT_EQ(TypeOf("rank(bool)"), "the number of a rank is not a bool");
  EXPECT_EQ(TypeOf("count(bool, [2])"), "a number of elements is not a bool");
  EXPECT_EQ(TypeOf("count(u8, [16, 16])"), "256 is not a number of type u8");
  EXPECT_TRUE(absl::StrContains(TypeOf("count(f32, [-1])"), "expected a size, found '-'"));
  EXPECT_TRUE(absl::StrContains(TypeOf("extent(f32, vector, 1)"),
                                "extent of dimension 1 of vector: want a dimension below 1"));
  EXPECT_TRUE(absl::StrContains(TypeOf("extent(f32, vector, K)"),
                                "expected a dimension of [H], found 'K'"));
}

TEST(InferComposed, ReducesOverRanksWhereSlicesMakeItNecessary) {
  EXPECT_EQ(TypeOf("norm(rows)"), "f32[] replicated");
  EXPECT_EQ(TypeOf("norm(local)"), "f32[] local");
  EXPECT_EQ(TypeOf("argmax(i32, rows, H)"), "i32[B, S, 1] sliced(1)");
  EXPECT_EQ(TypeOf("argmax(i64, rows, 1)"), "i64[B, 1, H] replicated");
  EXPECT_EQ(TypeOf("argmax(i32, vector, 0)"), "i32[] replicated");
  EXPECT_EQ(TypeOf("argmax(f32, rep, 1)"), "want an index in i32 or i64, have f32; use cast");
  EXPECT_EQ(TypeOf("argmax(i32, rep, 3)"), "want a dimension below 3, have 3");
  EXPECT_EQ(TypeOf("argmax(i32, rep > 0, 1)"),
            "want numbers, have gt(rep, const(0, f32)) : bool[B, S, H] replicated");
  EXPECT_EQ(TypeOf("softmax(rows)"), "f32[B, S, H] sliced(1)");
  EXPECT_EQ(TypeOf("softmax(cols)"), "f32[B, S, H] sliced(2)");
  EXPECT_EQ(TypeOf("layer_norm(cols, 1e-5)"), "f32[B, S, H] sliced(2)");
  EXPECT_EQ(TypeOf("rms_norm(vector, 1e-5)"), "f32[H] replicated");
  EXPECT_EQ(TypeOf("layer_norm(lr, 1e-5)"), "f32[] replicated");
}

TEST(InferDropout, KeepsTheType) {
  EXPECT_EQ(TypeOf("dropout(cols, seed, 0.1)"), "f32[B, S, H] sliced(2)");
  EXPECT_EQ(TypeOf("dropout(half, 7, 0)"), "f16[S, H] replicated");
  EXPECT_EQ(TypeOf("dropout(rep, seed, 0.5, 3)"), "f32[B, S, H] replicated");
  EXPECT_EQ(TypeOf("dropout(rep, seed, 1)"), "want a rate from 0 to below 1, have 1");
  EXPECT_EQ(TypeOf("dropout(int, seed, 0.1)"),
            "want floats, have int : i32[S, H] replicated and seed : i64[] replicated; use cast");
  EXPECT_EQ(TypeOf("dropout(rep, lr, 0.1)"),
            "want an i64[] replicated as the seed, have lr : f32[] replicated");
}

TEST(InferStochasticRound, IsOfF32) {
  EXPECT_EQ(TypeOf("round_stochastic(cols, seed)"), "bf16[B, S, H] sliced(2)");
  EXPECT_EQ(TypeOf("round_stochastic(rep, 7, 3)"), "bf16[B, S, H] replicated");
  EXPECT_EQ(TypeOf("round_stochastic(half, seed)"),
            "want f32, have half : f16[S, H] replicated and seed : i64[] replicated; use cast");
  EXPECT_EQ(TypeOf("round_stochastic(rep, lr)"),
            "want an i64[] replicated as the seed, have lr : f32[] replicated");
}

TEST(InferIota, HasTheOperandsShapeAndLayout) {
  EXPECT_EQ(TypeOf("iota(i32, cols, 1)"), "i32[B, S, H] sliced(2)");
  EXPECT_EQ(TypeOf("iota(i64, flat, 2)"), "i64[B, S, H] sliced(flat)");
  EXPECT_EQ(TypeOf("iota(i32, half, 0)"), "i32[S, H] replicated");
  EXPECT_EQ(TypeOf("iota(i32, local, 0)"), "i32[B, S, H] local");
  EXPECT_EQ(TypeOf("iota(f32, rep, 0)"), "want an index in i32 or i64, have f32; use cast");
  EXPECT_EQ(TypeOf("iota(i32, rep, 3)"), "want a dimension below 3, have 3");
  EXPECT_EQ(TypeOf("iota(i32, rep, flat)"), "want a dimension below 3, have flat");
  EXPECT_EQ(TypeOf("iota(i32, lr, 0)"), "want a tensor, have lr : f32[] replicated");
}

TEST(InferMatMul, ShapesAndTransposes) {
  EXPECT_EQ(TypeOf("matmul(rep, w)"), "f32[B, S, K] replicated");
  EXPECT_EQ(TypeOf("matmul(rep, w.t, transpose_b)"), "f32[B, S, K] replicated");
  EXPECT_EQ(TypeOf("matmul(q, rep, transpose_b)"), "f32[B, S, S] replicated");
  EXPECT_EQ(TypeOf("matmul(w, w, transpose_a)"), "f32[K, K] replicated");
  EXPECT_EQ(TypeOf("matmul(rep, w.t)"),
            "want as many columns of the first operand (H) as rows of the second (K), have rep : "
            "f32[B, S, H] replicated and w.t : "
            "f32[K, H] replicated");
  EXPECT_EQ(TypeOf("matmul(rep, vector)"),
            "want matrices, have rep : f32[B, S, H] replicated and vector : f32[H] replicated");
  EXPECT_EQ(
      TypeOf("matmul(int, w)"),
      "want operands of one dtype, or each of f8e4m3 or f8e5m2, have int : i32[S, H] replicated "
      "and w : f32[H, K] replicated; use cast");
  EXPECT_EQ(TypeOf("matmul(cast(f8e4m3, rep), cast(f8e5m2, w))"), "f32[B, S, K] replicated");
  EXPECT_EQ(TypeOf("matmul(cast(f8e5m2, cols), cast(f8e5m2, w.rows))"), "f32[B, S, K] local");
  EXPECT_EQ(TypeOf("matmul(cast(f8e4m3, rep), w)"),
            "want operands of one dtype, or each of f8e4m3 or f8e5m2, have cast(f8e4m3, rep) : "
            "f8e4m3[B, S, H] replicated and w : f32[H, K] replicated; use cast");
}

TEST(InferMatMul, Layouts) {
  EXPECT_EQ(TypeOf("matmul(cols, w.rows)"), "f32[B, S, K] local");  // partial sums
  EXPECT_EQ(TypeOf("matmul(rows, w)"), "f32[B, S, K] sliced(1)");
  EXPECT_EQ(TypeOf("matmul(rep, w.cols)"), "f32[B, S, K] sliced(2)");
  EXPECT_EQ(TypeOf("matmul(heads, w)"), "f32[B, S, K] sliced(0)");
  EXPECT_EQ(TypeOf("matmul(heads, heads, transpose_b)"), "f32[B, S, S] sliced(0)");
  EXPECT_EQ(TypeOf("matmul(local, w)"), "f32[B, S, K] local");
  EXPECT_EQ(TypeOf("matmul(cols, w)"),
            "the dimension that is summed over is sliced in one operand only, have cols : f32[B, "
            "S, H] sliced(2) and w : f32[H, K] "
            "replicated");
  EXPECT_EQ(TypeOf("matmul(rows, w.cols)"),
            "operands are sliced over different dimensions, have rows : f32[B, S, H] sliced(1) and "
            "w.cols : f32[H, K] sliced(1)");
  EXPECT_EQ(TypeOf("matmul(flat, w)"),
            "an operand sliced flat has no whole rows, have flat : f32[B, S, H] sliced(flat) and w "
            ": f32[H, K] replicated");
}

TEST(InferViews, Shapes) {
  EXPECT_EQ(TypeOf("transpose(rep, 2, 0, 1)"), "f32[H, B, S] replicated");
  EXPECT_EQ(TypeOf("reshape(rep, [S, B, H])"), "f32[S, B, H] replicated");
  EXPECT_EQ(TypeOf("slice(rep, 1, 2, 5)"), "f32[B, 3, H] replicated");
  EXPECT_EQ(TypeOf("transpose(rep, 0, 1)"),
            "want each dimension of rep : f32[B, S, H] replicated once");
  EXPECT_EQ(TypeOf("reshape(rep, [S, H])"),
            "want as many elements as rep : f32[B, S, H] replicated has, have [S, H]");
  EXPECT_EQ(TypeOf("slice(rep, 1, 5, 2)"), "want a range within [0, S), have [5, 2)");
  EXPECT_EQ(TypeOf("transpose(flat, 1, 0, 2)"),
            "parts of an operand sliced flat lie in no parts of the result, have flat : f32[B, S, "
            "H] sliced(flat); use all_gather");
  EXPECT_EQ(TypeOf("reshape(rows, [S, B, H])"),
            "want a shape in which the sliced dimension stays whole, have rows : f32[B, S, H] "
            "sliced(1); use all_gather");
  EXPECT_EQ(TypeOf("slice(rows, 1, 0, 2)"),
            "want a range of a dimension that is not sliced, have rows : f32[B, S, H] sliced(1); "
            "use all_gather");
  EXPECT_EQ(TypeOf("slice(flat, 1, 0, 2)"),
            "want a range of a dimension that is not sliced, have flat : f32[B, S, H] "
            "sliced(flat); use all_gather");
}

TEST(InferGather, PutsTheIndicesDimensionsInPlaceOfOne) {
  EXPECT_EQ(TypeOf("gather(w, int, 0)"), "f32[S, H, K] replicated");
  EXPECT_EQ(TypeOf("gather(rep, int, 1)"), "f32[B, S, H, H] replicated");
  EXPECT_EQ(TypeOf("gather(half, cast(i32, lr), 1)"), "f16[S] replicated");
  EXPECT_EQ(TypeOf("gather(vector, cast(i32, lr), 0)"), "f32[] replicated");
  EXPECT_EQ(TypeOf("gather(w, int, 2)"), "want a dimension below 2, have 2");
  EXPECT_EQ(TypeOf("gather(w, int, flat)"), "want a dimension below 2, have flat");
  EXPECT_EQ(TypeOf("gather(lr, int, 0)"), "want a tensor as the table, have lr : f32[] replicated");
  EXPECT_EQ(TypeOf("gather(w, half, 0)"),
            "want i32 indices, have half : f16[S, H] replicated; use cast");
}

TEST(InferGather, Layouts) {
  EXPECT_EQ(TypeOf("gather(rows, int, 1)"), "f32[B, S, H, H] local");
  EXPECT_EQ(TypeOf("gather(cols, int, 1)"), "f32[B, S, H, H] sliced(3)");
  EXPECT_EQ(TypeOf("gather(heads, int, 1)"), "f32[B, S, H, H] sliced(0)");
  EXPECT_EQ(TypeOf("gather(local, int, 1)"), "f32[B, S, H, H] local");
  EXPECT_EQ(TypeOf("gather(rep, int.local, 2)"), "f32[B, S, S, H] local");
  EXPECT_EQ(TypeOf("gather(rep, int.rows, 1)"), "f32[B, S, H, H] sliced(1)");
  EXPECT_EQ(TypeOf("gather(vector, int.flat, 0)"), "f32[S, H] sliced(flat)");
  EXPECT_EQ(TypeOf("gather(flat, int, 0)"),
            "rows of a table sliced flat lie on several ranks, have flat : f32[B, S, H] "
            "sliced(flat) and int : i32[S, H] replicated");
  EXPECT_EQ(TypeOf("gather(rows, int.rows, 1)"),
            "a sliced table takes indices that are equal on all ranks, have rows : f32[B, S, H] "
            "sliced(1) and int.rows : i32[S, H] sliced(0); use all_gather");
  EXPECT_EQ(TypeOf("gather(cols, int.local, 1)"),
            "a sliced table takes indices that are equal on all ranks, have cols : f32[B, S, H] "
            "sliced(2) and int.local : i32[S, H] local; use all_gather");
  EXPECT_EQ(TypeOf("gather(local, int.rows, 1)"), "f32[B, S, H, H] sliced(1)");
  EXPECT_EQ(TypeOf("gather(w, int.flat, 0)"),
            "indices sliced flat take elements of a vector only, not rows, have w : f32[H, K] "
            "replicated and int.flat : i32[S, H] sliced(flat)");
}

TEST(InferEmbeddingBag, Shapes) {
  EXPECT_EQ(TypeOf("embedding_bag(w, bags, sum)"), "f32[B, K] replicated");
  EXPECT_EQ(TypeOf("embedding_bag(cast(bf16, w), bags, mean)"), "f32[B, K] replicated");
  EXPECT_EQ(TypeOf("embedding_bag(rep, bags.lead, sum)"), "f32[B, T, H] replicated");
  EXPECT_EQ(TypeOf("embedding_bag(w, ids, offsets, mean)"), "f32[T, K] replicated");
  EXPECT_EQ(TypeOf("embedding_bag(w, ids, offsets, weights, sum)"), "f32[T, K] replicated");
  EXPECT_EQ(TypeOf("embedding_bag(cast(f64, w), bags, sum)"),
            "want a table in f32, f16 or bf16, have cast(f64, w) : f64[H, K] replicated; use cast");
  EXPECT_EQ(TypeOf("embedding_bag(w, w, sum)"),
            "want i32 indices, have w : f32[H, K] replicated; use cast");
  EXPECT_EQ(TypeOf("embedding_bag(vector, ids, sum)"),
            "want a table [..., V, D] and indices [..., B, L] with the same leading dimensions; or "
            "a table [V, D], indices [M] and offsets [B], have vector : f32[H] replicated and ids "
            ": i32[M] replicated");
  EXPECT_EQ(TypeOf("embedding_bag(w, ids, sum)"),
            "want a table [..., V, D] and indices [..., B, L] with the same leading dimensions; or "
            "a table [V, D], indices [M] and offsets [B], have w : f32[H, K] replicated and ids : "
            "i32[M] replicated");
  EXPECT_EQ(TypeOf("embedding_bag(w, bags, offsets, sum)"),
            "want a table of two dimensions, and vectors of indices and offsets, have w : f32[H, "
            "K] replicated, bags : i32[B, L] replicated and offsets : i32[T] replicated");
  EXPECT_EQ(TypeOf("embedding_bag(w, ids, weights, offsets, sum)"),
            "want a table, i32 indices, then i32 offsets if any, then f32 weights if any, have w : "
            "f32[H, K] replicated, ids : i32[M] replicated, weights : f32[M] replicated and "
            "offsets : i32[T] replicated");
  EXPECT_EQ(TypeOf("embedding_bag(w, ids, offsets, weights, mean)"),
            "weights go with sum, have mean");
  EXPECT_EQ(TypeOf("embedding_bag(w, ids, offsets, vector, sum)"),
            "want weights of the shape of the indices, have w : f32[H, K] replicated, ids : i32[M] "
            "replicated, offsets : i32[T] replicated and vector : f32[H] replicated");
}

TEST(InferEmbeddingBag, Layouts) {
  EXPECT_EQ(TypeOf("embedding_bag(w.rows, bags, sum)"), "f32[B, K] local");
  EXPECT_EQ(TypeOf("embedding_bag(w.cols, bags, sum)"), "f32[B, K] sliced(1)");
  EXPECT_EQ(TypeOf("embedding_bag(w, shard(bags, 0), sum)"), "f32[B, K] sliced(0)");
  EXPECT_EQ(TypeOf("embedding_bag(heads, shard(bags.lead, 0), sum)"), "f32[B, T, H] sliced(0)");
  EXPECT_EQ(TypeOf("embedding_bag(heads, bags.lead, sum)"), "f32[B, T, H] sliced(0)");
  EXPECT_EQ(TypeOf("embedding_bag(local, bags.lead, sum)"), "f32[B, T, H] local");
  EXPECT_EQ(TypeOf("embedding_bag(w, shard(bags, 1), sum)"),
            "want whole bags, have indices that are sliced within them, have w : f32[H, K] "
            "replicated and shard(bags, 1) : i32[B, L] sliced(1)");
  EXPECT_EQ(TypeOf("embedding_bag(w, shard(ids, 0), shard(offsets, 0), sum)"),
            "a bag of sliced offsets ends where one on another rank begins, have w : f32[H, K] "
            "replicated, shard(ids, 0) : i32[M] sliced(0) and shard(offsets, 0) : i32[T] "
            "sliced(0); use all_gather");
  EXPECT_EQ(TypeOf("embedding_bag(w, ids, shard(offsets, 0), sum)"),
            "want indices, offsets and weights of one layout, have w : f32[H, K] replicated, ids : "
            "i32[M] replicated and shard(offsets, 0) : i32[T] sliced(0)");
  EXPECT_EQ(
      TypeOf("embedding_bag(w.rows, shard(bags, 0), sum)"),
      "a sliced table takes indices that are equal on all ranks, or sliced over the same leading "
      "dimension, have w.rows : f32[H, K] sliced(0) and shard(bags, 0) : i32[B, L] sliced(0)");
  EXPECT_EQ(TypeOf("embedding_bag(local, shard(bags.lead, 1), sum)"), "f32[B, T, H] sliced(1)");
}

TEST(InferScatterAdd, ShapesAndLayouts) {
  EXPECT_EQ(TypeOf("scatter_add(cast(f16, int), int, [T])"), "f32[T] replicated");
  EXPECT_EQ(TypeOf("scatter_add(cast(f32, int.local), int, [T])"), "f32[T] local");
  EXPECT_EQ(TypeOf("scatter_add(cast(f32, int.rows), int.rows, [T])"), "f32[T] local");
  EXPECT_EQ(TypeOf("scatter_add(cast(f32, int.rows), int, [T])"),
            "want updates and indices that are sliced alike, have cast(f32, int.rows) : f32[S, H] "
            "sliced(0) and int : i32[S, H] replicated; use shard");
  EXPECT_EQ(TypeOf("scatter_add(w, ids, [T, K])"),
            "want updates [I..., D...], the last of I maybe 1, indices [I...] and a shape [V, "
            "D...], have w : f32[H, K] replicated and ids : i32[M] replicated for [T, K]");
  EXPECT_EQ(TypeOf("scatter_add(weights, ids, offsets, [T])"),
            "want weights in f32, have offsets : i32[T] replicated; use cast");
  EXPECT_EQ(TypeOf("scatter_add(reshape(vector, [H, 1]), transpose(int, 1, 0), [T])"),
            "f32[T] replicated");
  EXPECT_EQ(
      TypeOf("scatter_add(reshape(vector, [1, H]), int, [T])"),
      "want updates [I..., D...], the last of I maybe 1, indices [I...] and a shape [V, D...], "
      "have reshape(vector, [1, H]) : f32[1, H] replicated and int : i32[S, H] replicated for [T]");
  EXPECT_EQ(
      TypeOf("scatter_add(cast(f64, int), int, [T])"),
      "want updates in f32, f16 or bf16, have cast(f64, int) : f64[S, H] replicated; use cast");
}

TEST(InferMatMul, BroadcastsLeadingDimensions) {
  EXPECT_EQ(TypeOf("matmul(heads, mean(heads, 1), transpose_b)"), "f32[B, S, 1] sliced(0)");
  EXPECT_EQ(TypeOf("matmul(mean(rep, 0), rep, transpose_b)"), "f32[B, S, S] replicated");
  EXPECT_EQ(TypeOf("matmul(mean(rep, 0), heads, transpose_b)"), "f32[B, S, S] sliced(0)");
  EXPECT_EQ(TypeOf("matmul(rep, heads, transpose_b)"),
            "operands are sliced over different dimensions, have rep : f32[B, S, H] replicated and "
            "heads : f32[B, S, H] sliced(0)");
}

TEST(InferCommunication, Layouts) {
  EXPECT_EQ(TypeOf("broadcast(local, 1)"), "f32[B, S, H] replicated");
  EXPECT_EQ(TypeOf("reduce(sum, local, 0)"), "f32[B, S, H] local");
  EXPECT_EQ(TypeOf("all_to_all(rows, 2)"), "f32[B, S, H] sliced(2)");
  EXPECT_EQ(TypeOf("send(rows, next)"), "f32[B, S, H] sliced(1)");
  EXPECT_EQ(TypeOf("send(rep, previous)"), "f32[B, S, H] replicated");
  EXPECT_EQ(TypeOf("shard(rep, 1)"), "f32[B, S, H] sliced(1)");
  EXPECT_EQ(TypeOf("shard(rep, flat)"), "f32[B, S, H] sliced(flat)");
  EXPECT_EQ(TypeOf("shard(vector, flat)"), "f32[H] sliced(0)");
  EXPECT_EQ(TypeOf("shard(local, 1)"),
            "want a replicated operand, have local : f32[B, S, H] local");
  EXPECT_EQ(TypeOf("broadcast(rep, 0)"),
            "want a local operand, have rep : f32[B, S, H] replicated");
  EXPECT_EQ(TypeOf("all_to_all(rows, 1)"),
            "the operand is sliced so already, have rows : f32[B, S, H] sliced(1)");
  EXPECT_EQ(
      TypeOf("all_to_all(rep, 1)"),
      "want an operand sliced over a dimension, or owned, have rep : f32[B, S, H] replicated");
}

TEST(Infer, IndicesFitTheirDType) {
  const Graph g = *Parse("coconet 1\ninput x : u8[N] replicated\noutput y = iota(i32, x, 0)\n");
  EXPECT_TRUE(BindSizes(g, {{"N", int64_t{1} << 31}}).ok());
  EXPECT_TRUE(absl::StrContains(BindSizes(g, {{"N", (int64_t{1} << 31) + 1}}).status().message(),
                                "indices below 2147483649 do not fit i32"));
}

TEST(Infer, BoundSizesAreChecked) {
  const Graph g = *Parse(
      "coconet 1\ninput x : f32[M, N] replicated\noutput y = reshape(x, [N, M])\noutput z = "
      "slice(x, 1, 0, 4)\n");
  EXPECT_TRUE(BindSizes(g, {{"M", 3}, {"N", 4}}).ok());
  EXPECT_TRUE(absl::StrContains(BindSizes(g, {{"M", 3}, {"N", 2}}).status().message(),
                                "want a range within [0, 2), have [0, 4)"));
}

}  // namespace
}  // namespace coconet
