#include "coconet/ir/infer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "coconet/language/text.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr char kDeclarations[] = R"(coconet 1
input local : f32[N] local
input rep : f32[N] replicated
input sliced : f32[N] sliced(0)
input half : f16[N] replicated
input other : f32[M] replicated
input int : i32[N] replicated
input flag : bool[N] replicated
input scalar : f32[]
input table : f32[M, N] replicated
input rows : f32[M, N] sliced(0)
input columns : f32[M, N] sliced(1)
input flat : f32[M, N] sliced(flat)
input column : f32[M, 1] sliced(0)
input cell : f32[1, 1] sliced(1)
state auto.s : f32[N]
state local.s : f32[N] local
state sliced.s : f32[N] sliced(flat)
state scalar.s : f32[] replicated
)";

/// Type of an expression over the declarations, or the error without its line.
std::string TypeOf(const std::string& expression) {
  absl::StatusOr<Graph> g = Parse(absl::StrCat(kDeclarations, "output y = ", expression, "\n"));
  if (!g.ok()) {
    EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(absl::StripPrefix(g.status().message(), "line 20: "));
  }
  return Text(InferTypes(*g)->back());
}

TEST(Infer, LayoutsOfElementwiseOperations) {
  EXPECT_EQ(TypeOf("local + local"), "f32[N] local");
  EXPECT_EQ(TypeOf("local + rep"), "f32[N] local");
  EXPECT_EQ(TypeOf("rep + local"), "f32[N] local");
  EXPECT_EQ(TypeOf("rep + rep"), "f32[N] replicated");
  EXPECT_EQ(TypeOf("rep + auto.s"), "f32[N] replicated");
  EXPECT_EQ(TypeOf("auto.s"), "f32[N] replicated");
  EXPECT_EQ(TypeOf("sliced + sliced"), "f32[N] sliced(0)");
  EXPECT_EQ(TypeOf("rep - sliced"), "f32[N] sliced(0)");
  EXPECT_EQ(TypeOf("scalar * sliced"), "f32[N] sliced(0)");
  EXPECT_EQ(TypeOf("scalar * local"), "f32[N] local");
  EXPECT_EQ(TypeOf("rows * columns"),
            "mul(rows, columns): operands are sliced over different dimensions, have rows : f32[M, "
            "N] sliced(0) and columns : f32[M, N] sliced(1)");
  EXPECT_EQ(TypeOf("local + sliced"), "f32[N] sliced(0)");
}

TEST(Infer, SlicedDimsAreAlignedFromTheRight) {
  EXPECT_EQ(TypeOf("table + sliced"), "f32[M, N] sliced(1)");
  EXPECT_EQ(TypeOf("columns + sliced"), "f32[M, N] sliced(1)");
  EXPECT_EQ(TypeOf("rows + rep"), "f32[M, N] sliced(0)");
  EXPECT_EQ(TypeOf("rows + scalar"), "f32[M, N] sliced(0)");
  EXPECT_EQ(TypeOf("flat + table"), "f32[M, N] sliced(flat)");
  EXPECT_EQ(TypeOf("flat * scalar + flat"), "f32[M, N] sliced(flat)");
  EXPECT_EQ(TypeOf("cell * scalar"), "f32[1, 1] sliced(1)");
  EXPECT_EQ(TypeOf("rows + sliced"),
            "add(rows, sliced): operands are sliced over different dimensions, have rows : f32[M, "
            "N] sliced(0) and sliced : f32[N] sliced(0)");
  EXPECT_EQ(TypeOf("flat + rows"),
            "add(flat, rows): operands are sliced over different dimensions, have flat : f32[M, N] "
            "sliced(flat) and rows : f32[M, N] sliced(0)");
}

std::string WeightedTypeOf(const std::string& expression) {
  absl::StatusOr<Graph> g = Parse(absl::StrCat(R"(coconet 1
input x : f32[M, N] sliced(1, by L)
input y : f32[M, N] sliced(1, by W)
input z : f32[M, N] sliced(1)
input r : f32[N, M] sliced(0, by L)
input v : f32[N] sliced(0, by 2+3/7)
input t : f32[M, N] replicated
output o = )",
                                               expression, "\n"));
  if (!g.ok()) return std::string(absl::StripPrefix(g.status().message(), "line 8: "));
  return Text(InferTypes(*g)->back());
}

TEST(Infer, PartsByWeightStayAsTheyAreCut) {
  EXPECT_EQ(WeightedTypeOf("x * 2 + t"), "f32[M, N] sliced(1, by L)");
  EXPECT_EQ(WeightedTypeOf("v + t"), "f32[M, N] sliced(1, by 2+3/7)");
  EXPECT_EQ(WeightedTypeOf("transpose(x, 1, 0) + r"), "f32[N, M] sliced(0, by L)");
  EXPECT_EQ(WeightedTypeOf("sum(x, 0)"), "f32[1, N] sliced(1, by L)");
  EXPECT_EQ(WeightedTypeOf("sum(x, 1)"), "f32[M, 1] local");
  EXPECT_EQ(WeightedTypeOf("matmul(x, r)"), "f32[M, M] local");
  EXPECT_EQ(WeightedTypeOf("matmul(transpose(t, 1, 0), x)"), "f32[N, N] sliced(1, by L)");
  EXPECT_EQ(WeightedTypeOf("all_gather(x)"), "f32[M, N] replicated");
  EXPECT_EQ(WeightedTypeOf("all_to_all(x, 0)"), "f32[M, N] sliced(0)");
  EXPECT_EQ(WeightedTypeOf("x + y"),
            "add(x, y): operands are sliced over different parts, have x : f32[M, N] sliced(1, by "
            "L) and y : f32[M, N] sliced(1, by W)");
  EXPECT_EQ(WeightedTypeOf("x + z"),
            "add(x, z): operands are sliced over different parts, have x : f32[M, N] sliced(1, by "
            "L) and z : f32[M, N] sliced(1)");
  EXPECT_EQ(WeightedTypeOf("matmul(y, r)"),
            "matmul(y, r): operands are sliced over different parts, have y : f32[M, N] sliced(1, "
            "by W) and r : f32[N, M] sliced(0, by L)");
  EXPECT_EQ(WeightedTypeOf("all_gather(x, across)"),
            "all_gather(x, across): parts by weight, and owned tensors, are gathered over all "
            "ranks at once, have x : f32[M, N] sliced(1, by L)");
  EXPECT_EQ(Parse("coconet 1\ninput x : f32[4] sliced(0, by 2+3/4)\n").status().message(),
            "line 2: input x : f32[4] sliced(0, by 2+3/4): want weights BEFORE+OWN/ALL of at most "
            "2^52 together, have 2+3/4");
}

std::string OwnedTypeOf(const std::string& expression) {
  absl::StatusOr<Graph> g = Parse(absl::StrCat(R"(coconet 1
input x : f32[M, N] owned(by L)
input y : f32[M, N] owned(by W)
input z : f32[M, N] sliced(1)
input r : f32[N, 1] owned(by L)
input t : f32[M, N] replicated
input l : f32[M, N] local
input i : i32[M] replicated
output o = )",
                                               expression, "\n"));
  if (!g.ok()) return std::string(absl::StripPrefix(g.status().message(), "line 9: "));
  return Text(InferTypes(*g)->back());
}

TEST(Infer, WhatAnOwnerComputesItOwns) {
  EXPECT_EQ(OwnedTypeOf("x * 2 + t"), "f32[M, N] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("l + x"), "f32[M, N] owned(by L)");  // the owner's own values
  EXPECT_EQ(OwnedTypeOf("x * r[0:1]"), "f32[M, N] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("sum(x, 0)"), "f32[1, N] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("softmax(x)"), "f32[M, N] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("argmax(i32, x, 1)"), "i32[M, 1] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("matmul(x, x, transpose_b)"), "f32[M, M] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("matmul(x, t, transpose_a)"), "f32[N, N] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("transpose(x, 1, 0)"), "f32[N, M] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("reshape(x, [N, M])"), "f32[N, M] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("gather(x, i, 1)"), "f32[M, M] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("scatter_add(x, i, [8, N])"), "f32[8, N] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("sum(x)"), "f32[] local");  // 0 on the others
  EXPECT_EQ(OwnedTypeOf("x / norm(x)"), "f32[M, N] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("all_reduce(sum, sum(x))"), "f32[] replicated");
  EXPECT_EQ(OwnedTypeOf("x + y"),
            "add(x, y): operands have different owners, x : f32[M, N] owned(by L) and y : f32[M, "
            "N] owned(by W); use all_gather");
  EXPECT_EQ(OwnedTypeOf("z + x"),
            "add(z, x): no rank has both x : f32[M, N] owned(by L) and z : f32[M, N] sliced(1) "
            "whole; use all_gather or all_to_all");
  EXPECT_EQ(OwnedTypeOf("matmul(x, l, transpose_b)"),
            "matmul(x, l, transpose_b): want operands of the same owner, or equal on all ranks, "
            "have x : f32[M, N] owned(by L) and l : f32[M, N] local");
  EXPECT_EQ(
      OwnedTypeOf("reshape(x[0:1, 0:1], [])"),
      "reshape(slice(slice(...), 1, 0, 1), []): a scalar has no owner, have slice(slice(x, 0, 0, "
      "1), 1, 0, 1) : f32[1, 1] owned(by L); use sum, which gives a local one, or all_gather");
}

TEST(Infer, OwnersGetAndGiveWholeTensors) {
  EXPECT_EQ(OwnedTypeOf("all_gather(x)"), "f32[M, N] replicated");
  EXPECT_EQ(OwnedTypeOf("reduce_scatter(sum, l, owned(by W))"), "f32[M, N] owned(by W)");
  EXPECT_EQ(OwnedTypeOf("shard(t, owned(after 2, 1))"), "f32[M, N] owned(after 2, 1)");
  EXPECT_EQ(OwnedTypeOf("all_to_all(x, 1)"), "f32[M, N] sliced(1)");
  EXPECT_EQ(OwnedTypeOf("all_to_all(z, owned)"), "f32[M, N] owned");
  EXPECT_EQ(
      OwnedTypeOf("all_to_all(x, owned(by W))"),
      "all_to_all(x, owned(by W)): the operand is owned already, have x : f32[M, N] owned(by L)");
  EXPECT_EQ(OwnedTypeOf("reduce_scatter(sum, l, owned, node)"),
            "reduce_scatter(sum, l, owned, node): an owner gets its tensor from all ranks at once; "
            "leave node out");
  EXPECT_EQ(OwnedTypeOf("all_gather(x, across)"),
            "all_gather(x, across): parts by weight, and owned tensors, are gathered over all "
            "ranks at once, have x : f32[M, N] owned(by L)");
  EXPECT_EQ(
      OwnedTypeOf("send(x, next)"),
      "send(x, next): want what each rank has, have x : f32[M, N] owned(by L); use all_gather");
  EXPECT_EQ(OwnedTypeOf("shard(sum(t), owned)"),
            "shard(sum(t), owned): a scalar has no owner; want it local or replicated");
  EXPECT_EQ(Parse("coconet 1\nstate s : f32[] owned\nupdate(s, s * 2)\n").status().message(),
            "line 2: state s : f32[] owned: a scalar has no owner; want it local or replicated");
}

TEST(Infer, SlicedOperandsHoldTheResultsPart) {
  EXPECT_EQ(TypeOf("cell + table"),
            "add(cell, table): a sliced dimension cannot be broadcast to [M, N], have cell : "
            "f32[1, 1] sliced(1) and table : f32[M, N] replicated");
  EXPECT_EQ(TypeOf("column + rows"), "f32[M, N] sliced(0)");  // the dimensions behind it may be
}

TEST(Infer, ShapesBroadcastAsInNumPy) {
  EXPECT_EQ(TypeOf("table + rep"), "f32[M, N] replicated");
  EXPECT_EQ(TypeOf("rep + table"), "f32[M, N] replicated");
  EXPECT_EQ(TypeOf("select(flag, table, scalar)"), "f32[M, N] replicated");
  EXPECT_EQ(TypeOf("rep + other"),
            "add(rep, other): shapes do not broadcast, have rep : f32[N] replicated and other : "
            "f32[M] replicated");
}

TEST(Infer, DTypesAreNeverPromoted) {
  EXPECT_EQ(TypeOf("rep + half"),
            "add(rep, half): want operands of one dtype, have rep : f32[N] replicated and half : "
            "f16[N] replicated; use cast");
  EXPECT_EQ(TypeOf("cast(f16, rep) + half"), "f16[N] replicated");
  EXPECT_EQ(TypeOf("sqrt(int)"), "sqrt(int): want floats, have int : i32[N] replicated; use cast");
  EXPECT_EQ(TypeOf("abs(int)"), "i32[N] replicated");
  EXPECT_EQ(TypeOf("int < int"), "bool[N] replicated");
  EXPECT_EQ(TypeOf("flag + flag"),
            "add(flag, flag): want numbers, have flag : bool[N] replicated and flag : bool[N] "
            "replicated");
  EXPECT_EQ(TypeOf("select(flag, flag, flag)"), "bool[N] replicated");
  EXPECT_EQ(TypeOf("select(rep, rep, rep)"),
            "select(rep, rep, rep): want a bool as the condition, have rep : f32[N] replicated");
  EXPECT_EQ(TypeOf("flag and (rep < 2 or not flag)"), "bool[N] replicated");
  EXPECT_EQ(TypeOf("not rep"),
            "not(rep): want bools, have rep : f32[N] replicated; use a comparison");
  EXPECT_EQ(TypeOf("or(flag, rep)"),
            "or(flag, rep): want operands of one dtype, have flag : bool[N] replicated and rep : "
            "f32[N] replicated; use cast");
  EXPECT_EQ(TypeOf("select(flag, rep, half)"),
            "select(flag, rep, half): want operands of one dtype, have flag : bool[N] replicated, "
            "rep : f32[N] replicated and half : f16[N] replicated; use cast");
  EXPECT_EQ(TypeOf("cast(i32, auto.s)"), "i32[N] replicated");
}

TEST(Infer, Collectives) {
  EXPECT_EQ(TypeOf("all_reduce(sum, local)"), "f32[N] replicated");
  EXPECT_EQ(TypeOf("reduce_scatter(max, local, 0)"), "f32[N] sliced(0)");
  EXPECT_EQ(TypeOf("reduce_scatter(sum, local, flat)"), "f32[N] sliced(0)");
  EXPECT_EQ(TypeOf("reduce_scatter(sum, local * table, flat)"), "f32[M, N] sliced(flat)");
  EXPECT_EQ(TypeOf("all_gather(columns)"), "f32[M, N] replicated");
  EXPECT_EQ(TypeOf("all_reduce(sum, rep)"),
            "all_reduce(sum, rep): want a local operand, have rep : f32[N] replicated");
  EXPECT_EQ(TypeOf("all_reduce(sum, local < rep)"),
            "all_reduce(sum, lt(local, rep)): want numbers, have lt(local, rep) : bool[N] local");
  EXPECT_EQ(TypeOf("reduce_scatter(sum, sliced, 0)"),
            "reduce_scatter(sum, sliced, 0): want a local operand, have sliced : f32[N] sliced(0)");
  EXPECT_EQ(TypeOf("reduce_scatter(sum, local, 1)"),
            "reduce_scatter(sum, local, 1): want flat or a dimension from 0 to 0 of [N], have 1");
  EXPECT_EQ(TypeOf("reduce_scatter(sum, scalar, 0)"),
            "reduce_scatter(sum, scalar, 0): a scalar has no dimension to slice");
  EXPECT_EQ(TypeOf("all_gather(local)"),
            "all_gather(local): want a sliced operand, have local : f32[N] local");
}

TEST(Infer, UpdatesKeepTheStatesType) {
  EXPECT_EQ(TypeOf("update(auto.s, rep)"), "f32[N] replicated");
  EXPECT_EQ(TypeOf("update(local.s, local)"), "f32[N] local");
  EXPECT_EQ(TypeOf("update(sliced.s, sliced)"), "f32[N] sliced(0)");
  EXPECT_EQ(TypeOf("update(scalar.s, 0)"), "f32[] replicated");
  EXPECT_EQ(TypeOf("update(rep, rep)"),
            "update(rep, rep): want a state as the first operand, have rep : f32[N] replicated and "
            "rep : f32[N] replicated");
  EXPECT_EQ(TypeOf("update(auto.s, half)"),
            "update(auto.s, half): want a value of the state's dtype, have auto.s : f32[N] auto "
            "and half : f16[N] replicated; use cast");
  EXPECT_EQ(TypeOf("update(auto.s, 0)"),
            "update(auto.s, const(0, f32)): want a value of the state's shape, have auto.s : "
            "f32[N] auto and const(0, f32) : f32[] replicated");
  EXPECT_EQ(TypeOf("update(local.s, rep)"),
            "update(local.s, rep): want a value of the state's layout, have local.s : f32[N] local "
            "and rep : f32[N] replicated");
  EXPECT_EQ(TypeOf("update(auto.s, sliced)"),
            "update(auto.s, sliced): want a value of the state's layout, have auto.s : f32[N] auto "
            "and sliced : f32[N] sliced(0)");
  EXPECT_EQ(TypeOf("update(auto.s, rep) + update(auto.s, rep)"),
            "update(auto.s, rep): the state is updated twice; a step updates a state once");
}

TEST(Infer, ConstantsAreNumbersOfTheirType) {
  EXPECT_EQ(TypeOf("const(0.9, f32)"), "f32[] replicated");
  EXPECT_EQ(TypeOf("const(-inf, bf16)"), "bf16[] replicated");
  EXPECT_EQ(TypeOf("world(i64)"), "i64[] replicated");
  EXPECT_EQ(TypeOf("const(0.9, i32)"), "const(0.9, i32): 0.9 is not a number of type i32");
  EXPECT_EQ(TypeOf("const(256, u8)"), "const(256, u8): 256 is not a number of type u8");
  EXPECT_EQ(TypeOf("const(1e-08, f16)"), "const(1e-08, f16): 1e-08 is not a number of type f16");
  EXPECT_EQ(TypeOf("const(70000, f16)"), "const(70000, f16): 70000 is not a number of type f16");
  EXPECT_EQ(TypeOf("int + 0.5"), "const(0.5, i32): 0.5 is not a number of type i32");
  EXPECT_EQ(TypeOf("world(bool)"), "world(bool): the number of ranks is not a bool");
}

std::string ErrorOf(const Graph& g) { return std::string(InferTypes(g).status().message()); }

TEST(Infer, DeclarationsMustMakeSense) {
  const auto declared = [](const std::string& name, const TensorType& type) {
    Graph g;
    g.Add(Input{name, type});
    return ErrorOf(g);
  };
  EXPECT_EQ(declared("x", {DType::kF32, {"N"}, Layout::Local()}), "");
  EXPECT_EQ(declared("x", {DType::kF32, {"N"}, Layout::Auto()}),
            "input x : f32[N] auto: layout auto is for states; want local, replicated or sliced");
  EXPECT_EQ(declared("x", {DType::kF32, {"N"}, Layout::Sliced(1)}),
            "input x : f32[N] sliced(1): want flat or a dimension from 0 to 0 of [N], have 1");
  EXPECT_EQ(declared("x", {DType::kF32, {}, Layout::Sliced(0)}),
            "input x : f32[] sliced(0): a scalar has no dimension to slice");
  EXPECT_EQ(declared("x", {DType::kF32, {-1}, Layout::Local()}),
            "input x : f32[-1] local: shape [-1]: an extent is negative");
  EXPECT_EQ(declared("x", {DType::kF32, {"2N"}, Layout::Local()}),
            "input x : f32[2N] local: '2N' is not a name for a size");
  EXPECT_EQ(declared("a b", {DType::kF32, {}, {}}),
            "input a b : f32[] replicated: 'a b' cannot be a name");
  EXPECT_EQ(declared("world", {DType::kF32, {}, {}}),
            "input world : f32[] replicated: 'world' cannot be a name");
  EXPECT_EQ(declared("not", {DType::kF32, {}, {}}),
            "input not : f32[] replicated: 'not' cannot be a name");
  EXPECT_EQ(declared("", {DType::kF32, {}, {}}), "input  : f32[] replicated: '' cannot be a name");
}

TEST(Infer, GraphsMustBeWellFormed) {
  const TensorType scalar = {};
  Graph g;
  const NodeId x = g.Add(Input{"x", scalar});
  EXPECT_EQ(ErrorOf(g), "");

  Graph twice = g;
  twice.Add(State{"x", scalar});
  EXPECT_EQ(ErrorOf(twice), "state x : f32[] replicated: the name 'x' is taken");

  Graph forward = g;
  forward.Add(Pointwise{Pw::kNeg}, {1});
  EXPECT_EQ(ErrorOf(forward), "node 1: operand 1 does not come before it");
  forward.nodes[1].inputs = {-1};
  EXPECT_EQ(ErrorOf(forward), "node 1: operand -1 does not come before it");

  Graph few = g;
  few.Add(Pointwise{Pw::kAdd}, {x});
  EXPECT_EQ(ErrorOf(few), "add(x): want 2 operands, have 1");
  few.nodes[1] = {Cast{DType::kF16}, {}};
  EXPECT_EQ(ErrorOf(few), "cast(f16): want 1 operand, have 0");

  Graph after_output = g;
  after_output.Add(Output{"y"}, {x});
  after_output.Add(Pointwise{Pw::kNeg}, {1});
  EXPECT_EQ(ErrorOf(after_output), "neg(output y = x): an output yields no value to use");

  Graph named = g;
  named.name = "my program";
  EXPECT_EQ(ErrorOf(named), "'my program' cannot be the name of a program");
}

TEST(Infer, Identifiers) {
  for (const char* word : {"a", "_", "A1", "layer.0.w", "x_"})
    EXPECT_TRUE(IsIdentifier(word)) << word;
  for (const char* word : {"", "1a", ".a", "a-b", "a b", "%1", "\xc3\xa4"})
    EXPECT_FALSE(IsIdentifier(word)) << word;
}

}  // namespace
}  // namespace coconet
