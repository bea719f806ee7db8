#include "coconet/language/text.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/ir/infer.h"
#include "coconet/language/language.h"
#include "coconet/testing/random_program.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string PrintParsed(const std::string& text) {
  absl::StatusOr<Graph> g = Parse(text);
  return g.ok() ? Print(*g) : std::string(g.status().message());
}

std::string ErrorOf(const std::string& text) {
  const absl::Status status = Parse(text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(status.message());
}

/// The error of one line after a few declarations (it is line 5).
std::string ErrorOfLine(const std::string& line) {
  return ErrorOf(
      absl::StrCat("coconet 1\ninput x : f32[N] local\ninput lr : f32[]\nstate m : f32[N] local\n",
                   line, "\noutput y = x\n"));
}

TEST(Parse, ReadsStatementsAndInfixExpressions) {
  EXPECT_EQ(PrintParsed(R"(
# A comment, and blank lines, before the version.
coconet 1
program sgd.momentum

input g : f32[N, 4] local   # the gradient
state p : f32[N, 4] replicated
state m : f32[N, 4]
input lr : f32[]
G = all_reduce(sum, g) / world
m1 = update(m, 0.9 * m + (1 - 0.9) * G)
update(p, p - lr * -m1)
output small = m1 < 1e-3 + lr
)"),
            R"(coconet 1
program sgd.momentum
input g : f32[N, 4] local
state p : f32[N, 4] replicated
state m : f32[N, 4] auto
input lr : f32[] replicated
%4 = all_reduce(sum, g)
%5 = world(f32)
%6 = div(%4, %5)
%7 = const(0.9, f32)
%8 = mul(%7, m)
%9 = const(0.09999999999999998, f32)
%10 = mul(%9, %6)
%11 = add(%8, %10)
%12 = update(m, %11)
%13 = neg(%12)
%14 = mul(lr, %13)
%15 = sub(p, %14)
%16 = update(p, %15)
%17 = const(0.001, f32)
%18 = add(%17, lr)
%19 = lt(%12, %18)
output small = %19
)");
}

TEST(Parse, ReadsSumsOfExtentsAndAnyNumberOfOperands) {
  EXPECT_EQ(PrintParsed(R"(coconet 1
input a : f32[4 + N, 2 + 3] replicated
input b : f32[M, 5] replicated
state s : f32[N + M + 6 + 2*N + 8, 5]
update(s, concat(a, b + 1, a, slice(a, 0, 0, 2), a, 0))
output y = concat(b, 1)
)"),
            R"(coconet 1
input a : f32[N + 4, 5] replicated
input b : f32[M, 5] replicated
state s : f32[M + 3*N + 14, 5] auto
%3 = const(1, f32)
%4 = add(b, %3)
%5 = slice(a, 0, 0, 2)
%6 = concat(a, %4, a, %5, a, 0)
%7 = update(s, %6)
%8 = concat(b, 1)
output y = %8
)");
  EXPECT_EQ(ErrorOfLine("input z : f32[2*3] local"),
            "line 5: expected the name of a size, found '3'");
  EXPECT_EQ(ErrorOfLine("input z : f32[N +] local"), "line 5: expected a size, found ']'");
  EXPECT_EQ(ErrorOfLine("z = concat(x, m)"),
            "line 5: expected flat or the number of a dimension, found 'm'");
}

TEST(Parse, OperatorsBindAsInMathematics) {
  const std::string declarations = "coconet 1\ninput a : f32[]\ninput b : f32[]\ninput c : f32[]\n";
  const auto parsed = [&](const std::string& expression) {
    return PrintParsed(absl::StrCat(declarations, "output y = ", expression, "\n"));
  };
  EXPECT_EQ(parsed("a + b * c"), parsed("add(a, mul(b, c))"));
  EXPECT_EQ(parsed("a - b - c"), parsed("sub(sub(a, b), c)"));
  EXPECT_EQ(parsed("a / b * c"), parsed("mul(div(a, b), c)"));
  EXPECT_EQ(parsed("-a * b"), parsed("mul(neg(a), b)"));
  EXPECT_EQ(parsed("a - -b"), parsed("sub(a, neg(b))"));
  EXPECT_EQ(parsed("a+b<=c*b"), parsed("le(add(a, b), mul(c, b))"));
  EXPECT_EQ(parsed("(a < b) != (a < b)"), parsed("ne(lt(a, b), lt(a, b))"));
  EXPECT_EQ(parsed("a == b"), parsed("eq(a, b)"));
  EXPECT_EQ(parsed("a >= b"), parsed("ge(a, b)"));
  EXPECT_EQ(parsed("a != b"), parsed("ne(a, b)"));
  EXPECT_EQ(parsed("a > -2"), parsed("gt(a, const(-2, f32))"));
  EXPECT_EQ(parsed("a < b and b < c or not c < a"),
            parsed("or(and(lt(a, b), lt(b, c)), not(lt(c, a)))"));
  EXPECT_EQ(parsed("a < b or b < c and c < a"), parsed("or(lt(a, b), and(lt(b, c), lt(c, a)))"));
  EXPECT_EQ(parsed("not (a) < b and (not not a < c)"),
            parsed("and(not(lt(a, b)), not(not(lt(a, c))))"));
  EXPECT_EQ(parsed("select(not(a < b), a, b)"), parsed("select(not a < b, a, b)"));
}

TEST(Parse, EveryElementwiseFunctionIsACall) {
  for (const PwInfo& info : AllPointwise()) {
    const std::string one = info.of_bools ? "a < b" : info.of_bits ? "cast(i32, a)" : "a";
    const std::string call =
        absl::StrCat(info.name, info.arity == 3   ? "(a < b, a, b)"
                                : info.arity == 2 ? absl::StrCat("(", one, ", ", one, ")")
                                                  : absl::StrCat("(", one, ")"));
    const std::string text = PrintParsed(
        absl::StrCat("coconet 1\ninput a : f32[]\ninput b : f32[]\noutput y = ", call, "\n"));
    EXPECT_TRUE(absl::StartsWith(text, "coconet 1\n")) << text;  // no error
    EXPECT_NE(text.find(absl::StrCat(" = ", info.name, "(")), std::string::npos) << text;
  }
}

TEST(Parse, LayoutsAndDefaults) {
  EXPECT_EQ(PrintParsed("coconet 1\r\n"
                        "input a:f32[]\r\n"
                        "input b:bf16[2,N]sliced(1)\r\n"
                        "state c:i64[0] sliced ( flat )\r\n"
                        "state d:u8[] local\r\n"
                        "state e:bool[N]\r\n"
                        "input f:f32[2,N] sliced(1,by L)\r\n"
                        "input h:f32[N] sliced(flat, by 3+2/214)\r\n"
                        "input i:f32[N] owned\r\n"
                        "input j:f32[N] owned ( by L )\r\n"
                        "state k:f32[N] owned(after 3,2) each\r\n"
                        "update(e, e)"),
            R"(coconet 1
input a : f32[] replicated
input b : bf16[2, N] sliced(1)
state c : i64[0] sliced(flat)
state d : u8[] local
state e : bool[N] auto
input f : f32[2, N] sliced(1, by L)
input h : f32[N] sliced(flat, by 3+2/214)
input i : f32[N] owned
input j : f32[N] owned(by L)
state k : f32[N] owned(after 3, 2) each
%10 = update(e, e)
)");
}

TEST(Parse, CastGivesANumberItsType) {
  EXPECT_EQ(PrintParsed("coconet 1\noutput y = cast(f16, 2) + cast(f16, world)\n"),
            "coconet 1\n%0 = const(2, f16)\n%1 = world(f16)\n%2 = add(%0, %1)\noutput y = %2\n");
}

TEST(Parse, NamesOfOperationsAreFreeForValues) {
  EXPECT_EQ(
      PrintParsed("coconet 1\ninput add : f32[]\ninput = add(add, add)\noutput output = input\n"),
      "coconet 1\ninput add : f32[] replicated\n%1 = add(add, add)\noutput output = %1\n");
}

TEST(Parse, NumbersOfEveryForm) {
  for (const char* number :
       {"0", "-0", "1", "0.1", "1e-08", "5e-324", "1.7976931348623157e+308", "inf", "-inf"}) {
    const std::string text =
        absl::StrCat("coconet 1\n%0 = const(", number, ", f64)\noutput y = %0\n");
    EXPECT_EQ(PrintParsed(text), text);
  }
  EXPECT_EQ(PrintParsed("coconet 1\noutput y = const(.50, f64)\n"),
            PrintParsed("coconet 1\noutput y = const(5E-1, f64)\n"));
}

TEST(Parse, IntegersAreExact) {
  for (const char* constant :
       {"9007199254740993, i64", "-9007199254740993, i64", "9223372036854775807, i64",
        "-9223372036854775808, i64", "9223372036854775808, u64", "18446744073709551615, u64"}) {
    const std::string text = absl::StrCat("coconet 1\n%0 = const(", constant, ")\noutput y = %0\n");
    EXPECT_EQ(PrintParsed(text), text);
  }
  const std::string of_i64 = "coconet 1\ninput i : i64[4] local\noutput y = i + ";
  EXPECT_TRUE(absl::StrContains(PrintParsed(of_i64 + "9007199254740993\n"),
                                "const(9007199254740993, i64)"));
  EXPECT_TRUE(absl::StrContains(PrintParsed(of_i64 + "(9007199254740992 + 1)\n"),
                                "const(9007199254740993, i64)"));
  EXPECT_TRUE(
      absl::StrContains(PrintParsed(of_i64 + "pow(3, 39)\n"), "const(4052555153018976267, i64)"));
  EXPECT_TRUE(absl::StrContains(PrintParsed(of_i64 + "floor(-9007199254740993)\n"),
                                "const(-9007199254740993, i64)"));
  EXPECT_EQ(
      ErrorOf(of_i64 + "9223372036854775808"),
      "line 3: const(9223372036854775808, i64): 9223372036854775808 is not a number of type i64");
}

TEST(Parse, IntegersThatTheTypeHoldsNotAreRefused) {
  EXPECT_EQ(ErrorOf("coconet 1\ninput x : f64[4] local\noutput y = x + 9007199254740993"),
            "line 3: const(9007199254740993, f64): want a number that a double holds, have "
            "9007199254740993; the nearest is 9007199254740992");
  EXPECT_EQ(ErrorOf("coconet 1\ninput x : f64[4] local\noutput y = x + pow(3, 39)"),
            "line 3: const(4052555153018976267, f64): want a number that a double holds, have "
            "4052555153018976267; the nearest is 4052555153018976256");
  EXPECT_EQ(ErrorOf("coconet 1\noutput y = const(18446744073709551617, u64)\n"),
            "line 2: want a number that 64 bits or a double hold, have 18446744073709551617; the "
            "nearest is 18446744073709551616");
  for (const char* number : {"1152921504606846976", "123456789012345680", "1e+22"}) {
    const std::string text =
        absl::StrCat("coconet 1\n%0 = const(", number, ", f64)\noutput y = %0\n");
    EXPECT_EQ(PrintParsed(text), text);  // as to_chars prints it
  }
}

TEST(Parse, AnExtentThatSeveralDimensionsHaveNamesNone) {
  const std::string head = "coconet 1\ninput a : f32[N, M, N] replicated\noutput y = sum(a, ";
  EXPECT_EQ(Parse(head + "M)").status(), absl::OkStatus());
  EXPECT_EQ(ErrorOf(head + "N)"),
            "line 3: expected the number of a dimension, since several dimensions of [N, M, N] "
            "have the size N, found 'N'");
}

TEST(Parse, RangesAreSlices) {
  const std::string head =
      "coconet 1\ninput a : f32[N, 8] replicated\ninput b : f32[6, 8] replicated\n";
  const auto parsed = [&](absl::string_view expression) {
    return PrintParsed(absl::StrCat(head, "output y = ", expression, "\n"));
  };
  EXPECT_EQ(parsed("b[1:4]"), parsed("slice(b, 0, 1, 4)"));
  EXPECT_EQ(parsed("a[1:4]"), parsed("slice(a, 0, 1, 4)"));
  EXPECT_EQ(parsed("b[:-2]"), parsed("slice(b, 0, 0, 4)"));
  EXPECT_EQ(parsed("b[-2:]"), parsed("slice(b, 0, 4, 6)"));
  EXPECT_EQ(parsed("b[-5:-1]"), parsed("slice(b, 0, 1, 5)"));
  EXPECT_EQ(parsed("b[2:2]"), parsed("slice(b, 0, 2, 2)"));
  EXPECT_EQ(parsed("a[:, -3:]"), parsed("slice(a, 1, 5, 8)"));
  EXPECT_EQ(parsed("-(b + 1)[1:, 0:1] * 2"), parsed("-slice(slice(b + 1, 0, 1, 6), 1, 0, 1) * 2"));
  EXPECT_EQ(parsed("sqrt(b)[1:5][:2]"), parsed("slice(slice(sqrt(b), 0, 1, 5), 0, 0, 2)"));
  EXPECT_EQ(parsed("a[:]"), parsed("a"));
  const auto error = [&](absl::string_view expression) {
    return ErrorOf(absl::StrCat(head, "output y = ", expression, "\n"));
  };
  EXPECT_EQ(error("a[1:]"),
            "line 4: a range of dimension 0 of a : f32[N, 8] replicated is counted from its end, "
            "and N is no number yet; count from the beginning, and say where it ends");
  EXPECT_EQ(error("b[1:7]"), "line 4: slice(b, 0, 1, 7): want a range within [0, 6), have [1, 7)");
  EXPECT_EQ(error("b[4:2]"), "line 4: slice(b, 0, 4, 2): want a range within [0, 6), have [4, 2)");
  EXPECT_EQ(error("b[-7:2]"),
            "line 4: slice(b, 0, -1, 2): want a range within [0, 6), have [-1, 2)");
  EXPECT_EQ(error("b[:, :, 1:]"), "line 4: slice(b, 2, 1, 1): want a dimension below 2, have 2");
  EXPECT_EQ(error("3[1:]"),
            "line 4: a cast, collective or update was given plain numbers only; make a tensor of "
            "them with Constant");
  EXPECT_EQ(error("b[3]"), "line 4: expected ':', found ']'");
  EXPECT_EQ(error("b[x:]"), "line 4: expected where a range begins, or ':', found 'x'");
  EXPECT_EQ(error("b[1:x]"), "line 4: expected where a range ends, ',' or ']', found 'x'");
  EXPECT_EQ(error("b[1:2"), "line 4: expected ']', found end of line");
}

TEST(Parse, VersionComesFirst) {
  EXPECT_EQ(ErrorOf(""), "line 1: expected 'coconet 1', found no text");
  EXPECT_EQ(ErrorOf("# nothing\n\n"), "line 3: expected 'coconet 1', found no text");
  EXPECT_EQ(ErrorOf("\nprogram adam\n"),
            "line 2: expected 'coconet 1' as the first line, found 'program'");
  EXPECT_EQ(ErrorOf("coconet 2\n"),
            "line 1: the text is of version 2, this library reads version 1");
  EXPECT_EQ(ErrorOf("coconet\n"),
            "line 1: expected the version of the text form, found end of line");
  EXPECT_EQ(ErrorOf("coconet 1.0\n"), "line 1: expected the version of the text form, found '1.0'");
  EXPECT_EQ(ErrorOf("coconet 1 2\n"), "line 1: expected end of line, found '2'");
}

TEST(Parse, ProgramsDoSomething) {
  EXPECT_EQ(ErrorOf("coconet 1\n"), "line 2: the program has no statements");
  EXPECT_EQ(ErrorOf("coconet 1\nprogram p\n"), "line 3: the program has no statements");
  EXPECT_EQ(ErrorOf("coconet 1\ninput x : f32[]"),
            "line 2: the program updates no state and has no output");
}

TEST(Parse, StatementsSayWhatIsExpected) {
  EXPECT_EQ(ErrorOfLine("program late"),
            "line 5: the program's name comes once, before all other statements");
  EXPECT_EQ(
      ErrorOfLine("x + lr"),
      "line 5: expected program, sizes, input, state, output, update(...) or <name> =, found 'x'");
  EXPECT_EQ(ErrorOfLine("update"),
            "line 5: expected program, sizes, input, state, output, update(...) or <name> =, found "
            "'update'");
  EXPECT_EQ(ErrorOfLine("update(m, x) + x"), "line 5: expected end of line, found '+'");
  EXPECT_EQ(ErrorOfLine("input"), "line 5: expected the input's name, found end of line");
  EXPECT_EQ(ErrorOfLine("state 3 : f32[]"), "line 5: expected the state's name, found '3'");
  EXPECT_EQ(ErrorOfLine("input z f32[]"), "line 5: expected ':', found 'f32'");
  EXPECT_EQ(ErrorOfLine("input z : f31[]"),
            "line 5: expected a dtype (f32 f16 bf16 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool f8e4m3 "
            "f8e5m2), found 'f31' (did you mean 'f32'?)");
  EXPECT_EQ(ErrorOfLine("input z : f32"), "line 5: expected '[', found end of line");
  EXPECT_EQ(ErrorOfLine("input z : f32[N M]"), "line 5: expected ']', found 'M'");
  EXPECT_EQ(ErrorOfLine("input z : f32[1.5] local"), "line 5: expected a size, found '1.5'");
  EXPECT_EQ(ErrorOfLine("input z : f32[99999999999999999999] local"),
            "line 5: expected a size, found '99999999999999999999'");
  EXPECT_EQ(ErrorOfLine("input z : f32[-1] local"), "line 5: expected a size, found '-'");
  EXPECT_EQ(ErrorOfLine("input z : f32[N]"),
            "line 5: expected a layout (local, replicated, sliced(...), owned or auto), found end "
            "of line");
  EXPECT_EQ(ErrorOfLine("input z : f32[N] sliced(x)"),
            "line 5: expected flat or the number of a dimension, found 'x'");
  EXPECT_EQ(ErrorOfLine("input z : f32[N] local local"),
            "line 5: expected end of line, found 'local'");
  EXPECT_EQ(ErrorOfLine("x = lr"), "line 5: the name 'x' is taken");
  EXPECT_EQ(ErrorOfLine("input m : f32[]"), "line 5: the name 'm' is taken");
  EXPECT_EQ(ErrorOfLine("output x = lr"), "line 5: output x = lr: the name 'x' is taken");
  EXPECT_EQ(ErrorOfLine("world = lr"),
            "line 5: 'world' is the number of ranks and cannot be a name");
  EXPECT_EQ(ErrorOfLine("3 = lr"), "line 5: expected a name before '=', found '3'");
  EXPECT_EQ(ErrorOfLine("output z"), "line 5: expected '=', found end of line");
}

TEST(Text, SaysWhatIsTakenForAProgram) {
  const auto error = [](absl::string_view text) {
    return std::string(Parse(text).status().message());
  };
  EXPECT_EQ(error("step.coco"),
            "want the text of a program, have the path 'step.coco'; read the file, and pass what "
            "it contains");
  EXPECT_THAT(error("folder/step\n"), HasSubstr("have the path 'folder/step'"));
  EXPECT_THAT(error("HloModule m\nENTRY e {}"), HasSubstr("have XLA's HLO; sweep imports it"));
  EXPECT_THAT(error("module @jit_f {\n}"), HasSubstr("have MLIR; from JAX, HLO can be imported"));
  EXPECT_THAT(error("\x1f\x8b\x08"), HasSubstr("that gzip compressed; decompress it: gunzip FILE"));
  EXPECT_THAT(error("adam"), HasSubstr("expected 'coconet 1' as the first line"));
}

TEST(Text, SuggestsWhatMayBeMeant) {
  EXPECT_THAT(ErrorOfLine("inptu q : f32[4] local"), HasSubstr("(did you mean 'input'?)"));
  EXPECT_THAT(ErrorOfLine("input q : bf17[4] local"), HasSubstr("(did you mean 'bf16'?)"));
  EXPECT_THAT(ErrorOfLine("input q : f32[4] replicatd"), HasSubstr("(did you mean 'replicated'?)"));
}

TEST(Parse, ExpressionsSayWhatIsExpected) {
  EXPECT_EQ(ErrorOfLine("z ="), "line 5: expected a value, found end of line");
  EXPECT_EQ(ErrorOfLine("z = (x"), "line 5: expected ')', found end of line");
  EXPECT_EQ(ErrorOfLine("z = x)"), "line 5: expected end of line, found ')'");
  EXPECT_EQ(ErrorOfLine("z = x < x < x"), "line 5: expected end of line, found '<'");
  EXPECT_EQ(ErrorOfLine("z = x $ x"), "line 5: unexpected character '$'");
  EXPECT_EQ(ErrorOfLine(std::string("z = x\0x", 7)), "line 5: unexpected character '\\x00'");
  EXPECT_EQ(ErrorOfLine("z = \xff"), "line 5: unexpected character '\\xff'");
  EXPECT_EQ(ErrorOfLine("z = % 1"), "line 5: expected a number after '%'");
  EXPECT_EQ(ErrorOfLine("z = 12abc"), "line 5: expected a number, found '12abc'");
  EXPECT_EQ(ErrorOfLine("z = x * ."), "line 5: expected a number, found '.'");
  EXPECT_EQ(ErrorOfLine("z = x * 1e999"), "line 5: '1e999' is beyond the range of a number (f64)");
  EXPECT_EQ(ErrorOfLine("z = const(x, f32)"), "line 5: expected a number or inf, found 'x'");
  EXPECT_EQ(ErrorOfLine("z = all_reduce(mean, x)"),
            "line 5: expected sum, max or min, found 'mean'");
  EXPECT_EQ(ErrorOfLine("z = all_reduce(sum)"), "line 5: expected ',', found ')'");
  EXPECT_EQ(ErrorOfLine("z = reduce_scatter(sum, x)"), "line 5: expected ',', found ')'");
  EXPECT_EQ(ErrorOfLine("z = add(x)"), "line 5: add: want 2 operands, have 1");
  EXPECT_EQ(ErrorOfLine("z = sqrt(x, x)"), "line 5: sqrt: want 1 operand, have 2");
  EXPECT_EQ(ErrorOfLine("z = sqrt()"), "line 5: expected a value, found ')'");
  EXPECT_EQ(ErrorOfLine("z = select(x ? x, 1, 0)"), "line 5: unexpected character '?'");
  EXPECT_EQ(ErrorOfLine("z = select(x x, 1, 0)"), "line 5: expected ',' or ')', found 'x'");
  EXPECT_EQ(ErrorOfLine("z = x < x and"), "line 5: expected a value, found end of line");
  EXPECT_EQ(ErrorOfLine("z = not(x < x, x)"), "line 5: expected ')', found ','");
  EXPECT_EQ(ErrorOfLine("and = x"), "line 5: 'and' cannot be a name");
}

TEST(Parse, UnknownWordsGetSuggestions) {
  EXPECT_EQ(ErrorOfLine("z = lrr * x"), "line 5: unknown name 'lrr' (did you mean 'lr'?)");
  EXPECT_EQ(ErrorOfLine("z = quantity * x"), "line 5: unknown name 'quantity'");
  EXPECT_EQ(ErrorOfLine("z = %7"), "line 5: unknown name '%7'");
  EXPECT_EQ(ErrorOfLine("z = sqroot(x)"),
            "line 5: unknown operation 'sqroot' (did you mean 'sqrt'?); operations are const, "
            "world, count, rank, cast, bit_cast, iota, all_reduce, "
            "reduce_scatter, all_gather, sum, mean, amax, amin, total, "
            "dropout, round_stochastic, matmul, "
            "transpose, reshape, expand, reverse, slice, concat, gather, embedding_bag, "
            "scatter_add, shard, broadcast, reduce, "
            "all_to_all, send, opaque, update, add, "
            "sub, mul, div, rem, neg, abs, sign, min, max, pow, sqrt, rsqrt, exp, log, log1p, "
            "expm1, sin, cos, floor, ceil, round, "
            "tanh, erf, sigmoid, relu, gelu, silu, lt, le, gt, ge, eq, ne, and, or, not, bit_and, "
            "bit_or, bit_xor, bit_not, shift_left, shift_right, shift_right_logical, select, "
            "norm, keep_rows, softmax, layer_norm, rms_norm, cross_entropy, grad, stop_gradient, "
            "extent, argmax");
}

TEST(Parse, ProductsMayHaveScales) {
  constexpr char kText[] =
      "coconet 1\ninput x : f8e4m3[N, N] replicated\ninput s : f32[N, 1] replicated\n"
      "%2 = matmul(x, x, s, s)\noutput a = %2\n"
      "%4 = matmul(x, x, s, s, transpose_b)\noutput b = %4\n"
      "%6 = matmul(x, x, s, s, transpose_a, transpose_b)\noutput c = %6\n";
  EXPECT_EQ(PrintParsed(kText), kText);
  Program program("");
  const Tensor x = program.Input("x", DType::kF8E4M3, {"N", "N"}, Layout::Replicated()),
               s = program.Input("s", DType::kF32, {"N", 1}, Layout::Replicated());
  program.Output("a", MatMul(x, x, s, s));
  program.Output("b", MatMul(x, x, s, s, /*transpose_a=*/false, /*transpose_b=*/true));
  program.Output("c", MatMul(x, x, s, s, /*transpose_a=*/true, /*transpose_b=*/true));
  const absl::StatusOr<Graph> graph = program.graph();
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Print(*graph), kText);
}

TEST(Parse, RefusesFlagsThatAreNamesOfValues) {
  EXPECT_EQ(PrintParsed("coconet 1\ninput x : f8e4m3[N, N] replicated\n"
                        "input transpose_a : f32[N, 1] replicated\n"
                        "input transpose_b : f32[N, 1] replicated\n"
                        "output y = matmul(x, x, transpose_a, transpose_b)\n"),
            "line 5: 'transpose_a' is a flag of matmul here, and the name of a value: give the "
            "value another name");
}

TEST(Parse, AllToAllOfPartsOfUnequalSizesKeepsTheRowsInUse) {
  const auto parsed = [](const std::string& expression) {
    return PrintParsed(
        absl::StrCat("coconet 1\ninput x : f32[E, G, C, H] sliced(1)\n"
                     "input n : i32[E, G] sliced(1)\noutput y = ",
                     expression, "\n"));
  };
  EXPECT_EQ(parsed("all_to_all(x, n, 0)"), parsed("keep_rows(all_to_all(x, 0), all_to_all(n, 0))"));
  EXPECT_EQ(parsed("all_to_all(x, n)"),
            "line 4: expected flat or the number of a dimension, found 'n'");
  EXPECT_NE(parsed("all_to_all(x, owned)").find("all_to_all(x, owned)"), std::string::npos);
  EXPECT_NE(parsed("all_to_all(x, n, 0) + all_to_all(x, 2)").find("line 4: "), std::string::npos);
}

TEST(Parse, MistakesOfTypeHaveTheirLine) {
  EXPECT_EQ(ErrorOfLine("z = all_reduce(sum, lr)"),
            "line 5: all_reduce(sum, lr): want a local operand, have lr : f32[] replicated");
  EXPECT_EQ(ErrorOfLine("z = x * (1 / world)"),
            "line 5: div(1, world): no operand has a dtype; give one to a number or to world");
}

TEST(Parse, DeepNestingIsAnErrorAndLongChainsAreNot) {
  const std::string head = "coconet 1\ninput x : f32[]\noutput y = ";
  constexpr int kMany = 100000;
  const std::string deep = "line 3: the expression is nested deeper than 200 levels";
  EXPECT_EQ(ErrorOf(head + std::string(kMany, '(') + "x" + std::string(kMany, ')')), deep);
  EXPECT_EQ(ErrorOf(head + std::string(kMany, '-') + "x"), deep);
  std::string calls, chain = "x";
  for (int i = 0; i < kMany; ++i) {
    calls += "neg(";
    chain += " + x";
  }
  EXPECT_EQ(ErrorOf(head + calls), deep);
  absl::StatusOr<Graph> g = Parse(head + chain);
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ(g->size(), kMany + 2);
}

void ExpectRoundTrip(const Graph& g, const std::string& what) {
  const std::string text = Print(g);
  absl::StatusOr<Graph> parsed = Parse(text);
  ASSERT_TRUE(parsed.ok()) << what << ": " << parsed.status() << "\n" << text;
  EXPECT_EQ(*parsed, g) << what;
  EXPECT_EQ(Print(*parsed), text) << what;
}

TEST(RoundTrip, Workloads) {
  for (const WorkloadInfo& info : Workloads()) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      WorkloadOptions options;
      options.dtype = dtype;
      ExpectRoundTrip(MakeWorkload(info.name, options).value(),
                      absl::StrCat(info.name, " ", Name(dtype)));
    }
  }
}

TEST(RoundTrip, RandomPrograms) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    for (ProgramKind kind : kProgramKinds) {
      const Graph g = RandomProgram(seed, {.kind = kind});
      const std::string what = absl::StrCat(g.name, " of kind ", static_cast<int>(kind));
      ASSERT_TRUE(InferTypes(g).ok()) << what << ": " << InferTypes(g).status();
      ExpectRoundTrip(g, what);
      ExpectRoundTrip(Canonicalize(g).graph, "canonical " + what);
    }
  }
}

/// `text` with a few bytes flipped, dropped, doubled or taken from elsewhere, or cut short.
std::string Mutated(std::string text, std::mt19937_64& random) {
  for (uint64_t changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
    const size_t at = random() % text.size();
    switch (random() % 6) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
        break;
      case 1:
        text.erase(at, 1 + random() % 3);
        break;
      case 2:
        text.insert(at, 1, static_cast<char>(random() % 256));
        break;
      case 3:
        text.insert(at, text.substr(random() % text.size(), random() % 20));
        break;
      case 4:
        text[at] = text[random() % text.size()];
        break;
      case 5:
        if (random() % 8 == 0) text.resize(at);
        break;
    }
  }
  return text;
}

TEST(RoundTrip, DamagedTextIsRefusedOrStillMeansWhatItPrints) {
  std::vector<std::string> texts = {
      "coconet 1\nprogram p\ninput g : f32[N] local\nstate m : f32[N]\nm1 = update(m, 0.9 * m + (1 "
      "- 0.9) * "
      "all_reduce(sum, g) / world)\noutput y = select(m1 < 1e-3, -m1, cast(f32, 2))\n"};
  texts.push_back(Print(MakeWorkload("adamw", {.dtype = DType::kBF16}).value()));
  for (uint64_t seed = 0; seed < 10; ++seed)
    texts.push_back(Print(RandomProgram(seed, {.kind = ProgramKind::kSymbolic})));
  std::mt19937_64 random(1);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 30000; ++round) {
    const std::string text = Mutated(texts[random() % texts.size()], random);
    absl::StatusOr<Graph> g = Parse(text);
    if (!g.ok()) {
      ++refused;
      ASSERT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument) << text;
      ASSERT_THAT(std::string(g.status().message()),
                  AnyOf(StartsWith("line "), StartsWith("want the text of a program")))
          << text;
      continue;
    }
    ++accepted;
    absl::StatusOr<Graph> again = Parse(Print(*g));
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << text << "\n" << Print(*g);
    ASSERT_EQ(*again, *g) << text;
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace coconet
