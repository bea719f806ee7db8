#include "coconet/ir/op_table.h"

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

double Eval(absl::string_view name, double a, double b = 0, double c = 0) {
  const double args[] = {a, b, c};
  return Info(FindPointwise(name).value()).eval(args);
}

Number EvalInt(absl::string_view name, DType dtype, const Number& a, const Number& b = 0) {
  const Number args[] = {a, b};
  return EvalPointwise(FindPointwise(name).value(), dtype, args);
}

TEST(Pointwise, RowsAreFoundByName) {
  for (size_t i = 0; i < AllPointwise().size(); ++i) {
    EXPECT_EQ(FindPointwise(AllPointwise()[i].name), static_cast<Pw>(i));
  }
  EXPECT_EQ(Info(Pw::kSelect).name, "select");
  EXPECT_EQ(Info(Pw::kRsqrt).name, "rsqrt");
  EXPECT_EQ(FindPointwise("softmax"), std::nullopt);
}

TEST(Pointwise, TheGreatestIntegerStaysWhatItIs) {
  for (const DType dtype : {DType::kI64, DType::kU64}) {
    const Number greatest = Greatest(dtype), args[] = {1, greatest, 5};
    EXPECT_EQ(EvalPointwise(Pw::kSelect, dtype, args), greatest);
    EXPECT_EQ(EvalInt("max", dtype, greatest, 5), greatest);
    EXPECT_EQ(EvalInt("abs", dtype, greatest), greatest);
    EXPECT_EQ(EvalInt("div", dtype, greatest, 1), greatest);
    EXPECT_EQ(EvalInt("lt", dtype, EvalInt("sub", dtype, greatest, 1), greatest), 1);
  }
  EXPECT_EQ(EvalInt("abs", DType::kI64, INT64_MIN), INT64_MIN);
}

TEST(Pointwise, KernelExpressionsNameEachOperandOnceOrMore) {
  for (const PwInfo& info : AllPointwise()) {
    for (int i = 0; i < 3; ++i) {
      const bool named =
          std::string(info.kernel_expr).find("$" + std::to_string(i)) != std::string::npos;
      EXPECT_EQ(named, i < info.arity) << info.name;
    }
  }
}

TEST(Pointwise, ValuesOfEveryFunction) {
  const std::map<std::string, double> at_2_and_3 = {
      {"add", 5},
      {"sub", -1},
      {"mul", 6},
      {"div", 2. / 3},
      {"rem", 2},
      {"neg", -2},
      {"abs", 2},
      {"sign", 1},
      {"min", 2},
      {"max", 3},
      {"pow", 8},
      {"sqrt", M_SQRT2},
      {"rsqrt", M_SQRT1_2},
      {"exp", std::exp(2)},
      {"log", M_LN2},
      {"log1p", std::log(3)},
      {"expm1", std::exp(2) - 1},
      {"sin", 0.9092974268256817},
      {"cos", -0.4161468365471424},
      {"floor", 2},
      {"ceil", 2},
      {"round", 2},
      {"tanh", std::tanh(2)},
      {"erf", 0.9953222650189527},
      {"sigmoid", 0.8807970779778823},
      {"relu", 2},
      {"gelu", 1.9544997361036416},
      {"silu", 1.7615941559557646},
      {"lt", 1},
      {"le", 1},
      {"gt", 0},
      {"ge", 0},
      {"eq", 0},
      {"ne", 1},
      {"and", 1},
      {"or", 1},
      {"not", 0},
      {"bit_and", 2},
      {"bit_or", 3},
      {"bit_xor", 1},
      {"bit_not", -3},
      {"shift_left", 16},
      {"shift_right", 0},
      {"shift_right_logical", 0},
      {"select", 3},
  };
  EXPECT_EQ(at_2_and_3.size(), AllPointwise().size());
  for (const auto& [name, value] : at_2_and_3) {
    const Pw fn = *FindPointwise(name);
    const Number numbers[] = {2, 3, 4};
    EXPECT_NEAR(EvalNumbers(fn, numbers).real(), value, 1e-15 * std::abs(value)) << name;
    if (Info(fn).of_bits) {
      EXPECT_TRUE(std::isnan(Eval(name, 2, 3, 4))) << name;
    } else {
      EXPECT_NEAR(Eval(name, 2, 3, 4), value, 1e-15 * std::abs(value)) << name;
    }
  }
  EXPECT_EQ(Eval("select", 0, 3, 4), 4);
  EXPECT_EQ(Eval("floor", -2.5), -3);
  EXPECT_EQ(Eval("ceil", -2.5), -2);
  EXPECT_EQ(Eval("round", -2.5), -2);
  EXPECT_EQ(Eval("round", 3.5), 4);
  EXPECT_EQ(Eval("rem", -7.5, 2), -1.5);
  EXPECT_EQ(Eval("relu", -2), 0);
  EXPECT_EQ(Eval("sign", -2), -1);
  EXPECT_EQ(Eval("sign", 0), 0);
  EXPECT_NEAR(Eval("gelu", -10), -10 * 7.619853024160527e-24, 1e-36);  // the tail does not cancel
}

TEST(Pointwise, NaNsAreWhatTheFormulasSay) {
  for (const char* name : {"min", "max"}) {
    EXPECT_TRUE(std::isnan(Eval(name, kNaN, 1))) << name;
    EXPECT_TRUE(std::isnan(Eval(name, 1, kNaN))) << name;
  }
  EXPECT_TRUE(std::isnan(Eval("relu", kNaN)));
  EXPECT_TRUE(std::isnan(Eval("sign", kNaN)));
  EXPECT_EQ(Eval("lt", kNaN, 1), 0);
  EXPECT_EQ(Eval("eq", kNaN, kNaN), 0);
  EXPECT_EQ(Eval("ne", kNaN, kNaN), 1);
}

TEST(Pointwise, IntegersTruncateWrapAndDivideByZeroToZero) {
  EXPECT_EQ(EvalInt("div", DType::kI32, 7, 2), 3);
  EXPECT_EQ(EvalInt("div", DType::kI32, -7, 2), -3);
  EXPECT_EQ(EvalInt("div", DType::kI64, 5, 0), 0);
  EXPECT_EQ(EvalInt("div", DType::kI32, 0, 0), 0);
  EXPECT_EQ(EvalInt("div", DType::kI32, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(EvalInt("add", DType::kI32, INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(EvalInt("sub", DType::kU8, 1, 2), 255);
  EXPECT_EQ(EvalInt("add", DType::kI64, -1, 0), -1);
  EXPECT_EQ(EvalInt("neg", DType::kI64, 3), -3);
  EXPECT_EQ(EvalInt("mul", DType::kU8, 16, 17), 16);
  EXPECT_EQ(EvalInt("neg", DType::kU8, 1), 255);
  EXPECT_EQ(EvalInt("sub", DType::kU32, 1, 2), 4294967295);
  EXPECT_EQ(EvalInt("mul", DType::kI8, 16, 8), -128);
  EXPECT_EQ(EvalInt("rem", DType::kI32, -7, 3), -1);
  EXPECT_EQ(EvalInt("rem", DType::kI32, 7, 0), 0);
  EXPECT_EQ(EvalInt("bit_and", DType::kI32, -2, 7), 6);
  EXPECT_EQ(EvalInt("bit_or", DType::kI16, -32768, 1), -32767);
  EXPECT_EQ(EvalInt("bit_xor", DType::kU32, 4294967295, 1), 4294967294);
  EXPECT_EQ(EvalInt("bit_not", DType::kU8, 1), 254);
  EXPECT_EQ(EvalInt("bit_not", DType::kI32, 1), -2);
  EXPECT_EQ(EvalInt("shift_left", DType::kU32, 3, 31), 2147483648);
  EXPECT_EQ(EvalInt("shift_left", DType::kI32, 1, 32), 0);
  EXPECT_EQ(EvalInt("shift_left", DType::kI32, 1, -1), 0);
  EXPECT_EQ(EvalInt("shift_right", DType::kI32, -8, 1), -4);
  EXPECT_EQ(EvalInt("shift_right", DType::kI32, -8, 99), -1);
  EXPECT_EQ(EvalInt("shift_right", DType::kU32, 4294967295, 28), 15);
  EXPECT_EQ(EvalInt("shift_right_logical", DType::kI32, -1, 28), 15);
  EXPECT_EQ(EvalInt("shift_right_logical", DType::kI8, -1, 7), 1);
  EXPECT_EQ(EvalInt("shift_right_logical", DType::kI8, -3, 0), -3);
  EXPECT_EQ(EvalInt("shift_right_logical", DType::kI64, -1, 0), -1);
  EXPECT_EQ(EvalInt("shift_right_logical", DType::kI64, -1, 60), 15);
  EXPECT_EQ(EvalInt("shift_right_logical", DType::kI64, -1, 64), 0);
  EXPECT_EQ(EvalInt("lt", DType::kI32, 1, 2), 1);
  EXPECT_EQ(EvalInt("div", DType::kF32, 7, 2), 3.5);
  EXPECT_EQ(EvalInt("div", DType::kF32, 1, 0), kInf);
}

TEST(Pointwise, IntegersOf64BitsAreExact) {
  constexpr int64_t kOdd = (int64_t{1} << 53) + 1;
  EXPECT_EQ(EvalInt("add", DType::kI64, kOdd, 2), kOdd + 2);
  EXPECT_EQ(EvalInt("add", DType::kI64, INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(EvalInt("neg", DType::kI64, INT64_MIN), INT64_MIN);
  EXPECT_EQ(EvalInt("div", DType::kI64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(EvalInt("rem", DType::kI64, INT64_MIN, -1), 0);
  EXPECT_EQ(EvalInt("rem", DType::kU64, UINT64_MAX, 10), 5);
  EXPECT_EQ(EvalInt("div", DType::kU64, UINT64_MAX, 3), UINT64_MAX / 3);
  EXPECT_EQ(EvalInt("sub", DType::kU64, 0, 1), UINT64_MAX);
  EXPECT_EQ(EvalInt("mul", DType::kU64, UINT64_MAX, UINT64_MAX), 1);
  EXPECT_EQ(EvalInt("mul", DType::kI64, INT64_MIN, INT64_MIN), 0);
  EXPECT_EQ(EvalInt("mul", DType::kI64, kOdd, kOdd),
            static_cast<int64_t>(uint64_t{kOdd} * uint64_t{kOdd}));
  EXPECT_EQ(EvalInt("gt", DType::kU64, UINT64_MAX, UINT64_MAX - 1), 1);
  EXPECT_EQ(EvalInt("eq", DType::kI64, kOdd, kOdd - 1), 0);
  EXPECT_EQ(EvalInt("bit_not", DType::kU64, 0), UINT64_MAX);
  EXPECT_EQ(EvalInt("bit_xor", DType::kI64, INT64_MIN, -1), INT64_MAX);
  EXPECT_EQ(EvalInt("shift_left", DType::kI64, 3, 62), int64_t{3} << 62);
  EXPECT_EQ(EvalInt("shift_left", DType::kU64, 1, 63), uint64_t{1} << 63);
  EXPECT_EQ(EvalInt("shift_left", DType::kU64, 1, 64), 0);
  EXPECT_EQ(EvalInt("shift_right", DType::kI64, INT64_MIN, 63), -1);
  EXPECT_EQ(EvalInt("shift_right", DType::kU64, UINT64_MAX, 63), 1);
  EXPECT_EQ(EvalInt("shift_right_logical", DType::kI64, INT64_MIN, 63), 1);
}

TEST(Pointwise, PlainNumbersAreExactWhereAllAreIntegers) {
  const auto eval = [](Pw fn, const Number& a, const Number& b = 0) {
    const Number args[] = {a, b};
    return EvalNumbers(fn, args);
  };
  EXPECT_EQ(eval(Pw::kAdd, INT64_MAX, 1), uint64_t{1} << 63);
  EXPECT_EQ(eval(Pw::kSub, 0, uint64_t{1} << 63), INT64_MIN);
  EXPECT_EQ(eval(Pw::kAdd, UINT64_MAX, 1), 0x1p64);
  EXPECT_FALSE(eval(Pw::kAdd, UINT64_MAX, 1).is_integer());
  EXPECT_EQ(eval(Pw::kPow, 3, 39), int64_t{4052555153018976267});
  EXPECT_EQ(eval(Pw::kPow, 3, 40), uint64_t{12157665459056928801u});
  EXPECT_EQ(eval(Pw::kPow, -7, 21), int64_t{-558545864083284007});
  EXPECT_EQ(eval(Pw::kPow, -2, 63), INT64_MIN);
  EXPECT_EQ(eval(Pw::kPow, 2, 64), 0x1p64);
  EXPECT_EQ(eval(Pw::kPow, UINT64_MAX, 1), UINT64_MAX);
  EXPECT_FALSE(eval(Pw::kPow, UINT64_MAX, 2).is_integer());
  EXPECT_EQ(eval(Pw::kPow, -1, INT64_MAX), -1);
  EXPECT_EQ(eval(Pw::kPow, -1, INT64_MIN), 1);
  EXPECT_EQ(eval(Pw::kPow, 0, 0), 1);
  EXPECT_EQ(eval(Pw::kPow, 0, INT64_MAX), 0);
  EXPECT_EQ(eval(Pw::kPow, 0, -1), std::numeric_limits<double>::infinity());
  EXPECT_EQ(eval(Pw::kPow, 2, -1), 0.5);
  const int64_t odd = (int64_t{1} << 53) + 1;
  for (Pw fn : {Pw::kFloor, Pw::kCeil, Pw::kRound, Pw::kAbs, Pw::kRelu})
    EXPECT_EQ(eval(fn, odd), odd) << Info(fn).name;
  for (Pw fn : {Pw::kMax, Pw::kMin, Pw::kRem}) {
    const int64_t other = fn == Pw::kMax ? 1 : INT64_MAX;
    EXPECT_EQ(eval(fn, odd, other), odd) << Info(fn).name;
  }
  EXPECT_EQ(eval(Pw::kDiv, 7, 2), 3.5);
  EXPECT_EQ(eval(Pw::kMul, 3, 0.5), 1.5);
  EXPECT_TRUE(std::signbit(eval(Pw::kNeg, 0).real()));
  EXPECT_TRUE(eval(Pw::kBitAnd, 3, 0.5).is_nan());
}

TEST(Op, TextForMessagesIsTheName) {
  EXPECT_EQ(OpText(Input{"g", {}}), "input @g");
  EXPECT_EQ(OpText(State{"m", {}}), "state @m");
  EXPECT_EQ(OpText(Pointwise{Pw::kSub}), "sub");
  EXPECT_EQ(OpText(ReduceScatter{ReduceKind::kMax, 1}), "reduce_scatter");
}

TEST(Op, WholeTextHasEveryAttribute) {
  EXPECT_EQ(OpText(Const{0.5, DType::kF16}, {}), "const(0.5, f16)");
  EXPECT_EQ(OpText(WorldSize{DType::kI32}, {}), "world(i32)");
  EXPECT_EQ(OpText(Pointwise{Pw::kSelect}, {"c", "%1", "%2"}), "select(c, %1, %2)");
  EXPECT_EQ(OpText(Cast{DType::kBF16}, {"x"}), "cast(bf16, x)");
  EXPECT_EQ(OpText(Iota{DType::kI32, 2}, {"x"}), "iota(i32, x, 2)");
  EXPECT_EQ(OpText(Gather{1}, {"t", "i"}), "gather(t, i, 1)");
  EXPECT_EQ(OpText(EmbeddingBag{Pooling::kMean}, {"t", "i", "o"}), "embedding_bag(t, i, o, mean)");
  EXPECT_EQ(OpText(AllReduce{ReduceKind::kMin}, {"x"}), "all_reduce(min, x)");
  EXPECT_EQ(OpText(ReduceScatter{ReduceKind::kSum, Layout::kFlat}, {"x"}),
            "reduce_scatter(sum, x, flat)");
  EXPECT_EQ(OpText(AllGather{}, {"x"}), "all_gather(x)");
  EXPECT_EQ(OpText(Update{}, {"m", "%3"}), "update(m, %3)");
  EXPECT_EQ(OpText(Output{"y"}, {"%3"}), "output y = %3");
  EXPECT_EQ(OpText(State{"m", {DType::kF32, {"N"}, Layout::Auto()}}, {}), "state m : f32[N] auto");
}

TEST(Op, EveryCallIsFoundByItsName) {
  for (absl::string_view name : CallNames()) {
    const std::optional<Op> op = FindCall(name);
    ASSERT_TRUE(op.has_value()) << name;
    EXPECT_EQ(OpText(*op), name);
  }
  EXPECT_FALSE(FindCall("input").has_value());
  EXPECT_FALSE(FindCall("output").has_value());
  EXPECT_EQ(std::get<Fold>(*FindCall("amax")).kind, FoldKind::kMax);
  EXPECT_EQ(std::get<Pointwise>(*FindCall("silu")).fn, Pw::kSilu);
}

TEST(Op, AttributesLeftOutAreNotWritten) {
  EXPECT_EQ(OpText(AllGather{Span::kNode}, {"x"}), "all_gather(x, node)");
  EXPECT_EQ(OpText(Dropout{0.5}, {"x", "s"}), "dropout(x, s, 0.5)");
  EXPECT_EQ(OpText(Dropout{0.5, 3}, {"x", "s"}), "dropout(x, s, 0.5, 3)");
  EXPECT_EQ(OpText(MatMul{false, true}, {"a", "b"}), "matmul(a, b, transpose_b)");
  EXPECT_EQ(OpText(Fold{FoldKind::kMin, {}}, {"x"}), "amin(x)");
  EXPECT_EQ(OpText(Fold{FoldKind::kMean, {0, 2}}, {"x"}), "mean(x, 0, 2)");
  EXPECT_EQ(OpText(Total{}, {"x"}), "total(sum, x)");
  EXPECT_EQ(OpText(Send{-1}, {"x"}), "send(x, previous)");
}

TEST(Op, RowsAnswerForAllOperations) {
  Op input = Input{"g", {DType::kF32, {"N"}, {}}};
  Op reshape = Reshape{{4}};
  EXPECT_EQ(*DeclaredName(input), "g");
  EXPECT_EQ(Text(*DeclaredShape(input)), "[N]");
  EXPECT_EQ(Text(*DeclaredShape(reshape)), "[4]");
  EXPECT_EQ(DeclaredName(reshape), nullptr);
  EXPECT_EQ(StreamOf(StochasticRound{5}), 5);
  EXPECT_EQ(StreamOf(Cast{}), std::nullopt);
  EXPECT_EQ(SpanOf(AllReduce{ReduceKind::kSum, Span::kAcross}), Span::kAcross);
  EXPECT_EQ(SpanOf(Shard{}), Span::kAll);
  EXPECT_TRUE(IsComputation(Total{}));
  EXPECT_FALSE(IsComputation(Dropout{}));  // its words are worth keeping
  EXPECT_TRUE(Communicates(Op(Send{})));
  EXPECT_FALSE(Communicates(Op(Shard{})));
  EXPECT_TRUE(IsKernelWork(Op(AllReduce{})));
  EXPECT_FALSE(IsKernelWork(Op(AllReduce{ReduceKind::kSum, Span::kAcross})));
  EXPECT_FALSE(IsKernelWork(Op(MatMul{})));
  EXPECT_TRUE(IsView(Gather{}));
  EXPECT_FALSE(IsView(EmbeddingBag{}));
  EXPECT_TRUE(TakesOtherPlaces(EmbeddingBag{}));
  EXPECT_EQ(ArityOf(EmbeddingBag{}).least, 2);
  EXPECT_EQ(ArityOf(EmbeddingBag{}).most, 4);
  EXPECT_EQ(ArityOf(MatMul{}).least, 2);
  EXPECT_EQ(ArityOf(MatMul{}).most, 4);
  EXPECT_EQ(ArityOf(Gather{}).most, 2);
}

}  // namespace
}  // namespace coconet
