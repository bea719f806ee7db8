#include "coconet/language/language.h"
#include "coconet/language/bags.h"
#include "coconet/language/composed.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/language/text.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// Canonical text of a program, or its error.
std::string TextOf(const Program& p) {
  absl::StatusOr<Graph> g = p.graph();
  if (!g.ok()) return std::string(g.status().message());
  return Print(Canonicalize(*g).graph);
}

TEST(Language, ReadsLikeTheMaths) {
  Program p("sgd");
  Tensor g = p.Input("g", DType::kF32, {"N"}, Layout::Local());
  Tensor w = p.State("w", DType::kF32, {"N"}, Layout::Replicated());
  Tensor lr = p.Scalar("lr");
  Update(w, w - lr * AllReduce(ReduceKind::kSum, g) / p.world());
  EXPECT_EQ(TextOf(p), R"(coconet 1
program sgd
input g : f32[N] local
state w : f32[N] replicated
input lr : f32[] replicated
%3 = all_reduce(sum, g)
%4 = mul(lr, %3)
%5 = world(f32)
%6 = div(%4, %5)
%7 = sub(w, %6)
%8 = update(w, %7)
)");
}

/// Name of the operation that makes output `name`.
std::string MakerOf(const Graph& g, const std::string& name) {
  for (const Node& node : g.nodes) {
    const auto* output = std::get_if<Output>(&node.op);
    if (output != nullptr && output->name == name) return OpText(g.nodes[node.inputs[0]].op);
  }
  return "no output " + name;
}

TEST(Language, EveryFunctionIsItsOperation) {
  Program p("all");
  const Tensor a = p.Scalar("a"), b = p.Scalar("b");
  const Tensor local = p.Input("x", DType::kF32, {"M", "N"}, Layout::Local());
  const Tensor sliced = p.Input("y", DType::kF32, {"M", "N"}, Layout::Sliced(1));
  const std::pair<const char*, Tensor> values[] = {
      {"add", a + b},
      {"sub", a - b},
      {"mul", a * b},
      {"div", a / b},
      {"neg", -a},
      {"abs", Abs(a)},
      {"sign", Sign(a)},
      {"min", Min(a, b)},
      {"max", Max(a, b)},
      {"pow", Pow(a, b)},
      {"sqrt", Sqrt(a)},
      {"rsqrt", Rsqrt(a)},
      {"exp", Exp(a)},
      {"log", Log(a)},
      {"tanh", Tanh(a)},
      {"erf", Erf(a)},
      {"sigmoid", Sigmoid(a)},
      {"relu", Relu(a)},
      {"gelu", Gelu(a)},
      {"silu", Silu(a)},
      {"lt", a < b},
      {"le", a <= b},
      {"gt", a > b},
      {"ge", a >= b},
      {"eq", Equal(a, b)},
      {"ne", NotEqual(a, b)},
      {"and", And(a < b, a < 0)},
      {"or", Or(a < b, a < 0)},
      {"not", Not(a < b)},
      {"select", Select(a < b, a, b)},
      {"cast", CastTo(DType::kF16, a)},
      {"iota", Iota(DType::kI32, sliced, 1)},
      {"gather", Gather(local, Iota(DType::kI32, local, 1), 1)},
      {"embedding_bag", EmbeddingBag(local, Iota(DType::kI32, local, 1), Pooling::kMean)},
      {"all_reduce", AllReduce(ReduceKind::kMax, local)},
      {"reduce_scatter", ReduceScatter(ReduceKind::kSum, local, 1)},
      {"all_gather", AllGather(sliced)},
      {"const", p.Constant(1, DType::kF32)},
      {"world", p.world(DType::kF32)},
      {"rank", p.rank(DType::kF32)},
      {"count", Extent(DType::kF32, sliced, 1)},
  };
  for (const auto& [name, value] : values) p.Output(absl::StrCat("of.", name), value);
  absl::StatusOr<Graph> g = p.graph();
  ASSERT_TRUE(g.ok()) << g.status();
  for (const auto& [name, value] : values) EXPECT_EQ(MakerOf(*g, absl::StrCat("of.", name)), name);
}

TEST(Language, TensorsKnowTheirTypes) {
  Program p("types");
  const Tensor x = p.Input("x", DType::kF16, {"N"}, Layout::Local());
  EXPECT_EQ(Text((x * 2).type()), "f16[N] local");
  EXPECT_EQ(Text(ReduceScatter(ReduceKind::kSum, x).type()), "f16[N] sliced(0)");
  EXPECT_EQ(Text(p.Scalar("step", DType::kF64).type()), "f64[] replicated");
  EXPECT_EQ(Text(p.State("s", DType::kF32, {"N"}).type()), "f32[N] auto");
}

TEST(Language, NumbersTakeTheDTypeTheyMeet) {
  Program p("numbers");
  const Tensor x = p.Scalar("x", DType::kF64), n = p.Scalar("n", DType::kI32);
  p.Output("a", (1 - 0.9) * x);
  p.Output("b", Select(x < 2, x, 0));
  p.Output("c", n + p.world());
  p.Output("d", CastTo(DType::kF16, n - p.world() + 1));
  EXPECT_EQ(TextOf(p), R"(coconet 1
program numbers
input x : f64[] replicated
input n : i32[] replicated
%2 = const(0.09999999999999998, f64)
%3 = mul(%2, x)
output a = %3
%5 = const(2, f64)
%6 = lt(x, %5)
%7 = const(0, f64)
%8 = select(%6, x, %7)
output b = %8
%10 = world(i32)
%11 = add(n, %10)
output c = %11
%13 = sub(n, %10)
%14 = const(1, i32)
%15 = add(%13, %14)
%16 = cast(f16, %15)
output d = %16
)");
}

TEST(Language, NumbersAloneAreCalculated) {
  Program p("folded");
  const Tensor x = p.Scalar("x");
  p.Output("y", x + Select(Tensor(1) < Tensor(2), Sqrt(9) * Max(2, 3), 0));
  EXPECT_EQ(TextOf(p), R"(coconet 1
program folded
input x : f32[] replicated
%1 = const(9, f32)
%2 = add(x, %1)
output y = %2
)");
}

TEST(Language, StatesOfScalarsTakeNumbers) {
  Program p("reset");
  Update(p.State("count", DType::kI32, {}), 0);
  EXPECT_EQ(TextOf(p), R"(coconet 1
program reset
state count : i32[] auto
%1 = const(0, i32)
%2 = update(count, %1)
)");
}

TEST(Language, TheFirstMistakeSticks) {
  Program p("mistakes");
  const Tensor x = p.Input("x", DType::kF32, {"N"}, Layout::Local());
  const Tensor h = p.Input("h", DType::kF16, {"N"}, Layout::Local());
  EXPECT_TRUE(p.status().ok());
  const Tensor bad = x + h;
  const Tensor worse = AllReduce(ReduceKind::kSum, bad * 2) + p.State("x", DType::kF32, {});
  EXPECT_EQ(bad.id(), -1);
  EXPECT_EQ(worse.id(), -1);
  p.Output("y", worse);
  EXPECT_EQ(TextOf(p),
            "add(x, h): want operands of one dtype, have x : f32[N] local and h : f16[N] local; "
            "use cast");
  EXPECT_EQ(p.graph().status().code(), absl::StatusCode::kInvalidArgument);
}

template <class F>
std::string MistakeOf(F write) {
  Program p("p");
  write(p, p.Input("x", DType::kF32, {"N"}, Layout::Local()));
  return TextOf(p);
}

TEST(Language, MistakesSayWhatIsMissing) {
  EXPECT_EQ(MistakeOf([](Program&, Tensor) {}), "the program updates no state and has no output");
  EXPECT_EQ(MistakeOf([](Program& p, Tensor x) { p.Output("y", x * (1 / p.world())); }),
            "div(1, world): no operand has a dtype; give one to a number or to world");
  EXPECT_EQ(MistakeOf([](Program& p, Tensor) { p.Output("y", 3); }),
            "output y = 3: want a tensor, have a plain number");
  EXPECT_EQ(
      MistakeOf([](Program& p, Tensor) { p.Output("y", AllReduce(ReduceKind::kSum, p.world())); }),
      "all_reduce(sum, world): want a tensor, have a plain number");
  EXPECT_EQ(
      MistakeOf([](Program& p, Tensor x) { p.Output("y", x + AllReduce(ReduceKind::kSum, 3)); }),
      "a cast, collective or update was given plain numbers only; make a tensor of them with "
      "Constant");
  EXPECT_EQ(MistakeOf([](Program& p, Tensor x) { p.Output("y", Select(1, x, x)); }),
            "select(1, x, x): want a tensor, have a plain number");
  EXPECT_EQ(MistakeOf([](Program&, Tensor x) { Update(3, x); }),
            "update(const(3, f32), x): want a state as the first operand, have const(3, f32) : "
            "f32[] replicated and x : f32[N] local");
  EXPECT_EQ(MistakeOf([](Program& p, Tensor) { p.Input("x", DType::kF32, {}, {}); }),
            "input x : f32[] replicated: the name 'x' is taken");
  EXPECT_EQ(MistakeOf([](Program& p, Tensor x) { p.Output("y", x + 1e300); }),
            "const(1e+300, f32): 1e+300 is not a number of type f32");
}

TEST(Language, RangesCountAsPythonDoes) {
  Program p("rows");
  const Tensor x = p.Input("x", DType::kF32, {6, "N"}, Layout::Replicated());
  EXPECT_EQ(Text(Rows(x, 1).type()), "f32[5, N] replicated");
  EXPECT_EQ(Text(Rows(x, -2).type()), "f32[2, N] replicated");
  EXPECT_EQ(Text(Rows(x, 1, -1).type()), "f32[4, N] replicated");
  EXPECT_EQ(Text(Between(x, 1, 2, 5).type()), "f32[6, 3] replicated");
  EXPECT_EQ(Rows(x, 0).id(), x.id());
  EXPECT_EQ(Between(x, 1, 2).id(), -1);
  EXPECT_FALSE(p.status().ok());
}

TEST(Language, TensorsOfTwoProgramsDoNotMix) {
  Program other("other");
  const Tensor foreign = other.Scalar("s");
  EXPECT_EQ(MistakeOf([&](Program& p, Tensor x) { p.Output("y", x + foreign); }),
            "add: an operand belongs to another program");
  EXPECT_TRUE(other.status().ok());
}

TEST(Language, ProgramsNeedANameThatPrints) {
  EXPECT_EQ(TextOf(Program("two words")), "'two words' cannot be the name of a program");
}

}  // namespace
}  // namespace coconet
