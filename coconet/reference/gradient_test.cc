// Gradients against central differences of the loss.
#include "coconet/language/gradient.h"

#include <cctype>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "coconet/testing/finite_differences.h"
#include "coconet/testing/random_elements.h"
#include "coconet/testing/random_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::NanSensitiveDoubleEq;
using ::testing::NanSensitiveDoubleNear;
using ::testing::Not;

uint64_t Seed() { return GetEnv().seed.value_or(std::random_device()()); }

/// Away from 0, and no two alike (equal ones would be at a kink of a comparison); indices of rows,
/// some of which no table has.
ElementSource Elements(const Graph& g, uint64_t seed) {
  const ElementSource drawn = RandomElements(seed);
  std::map<std::string, DType> dtypes;
  for (const Node& node : g.nodes) {
    if (const TensorType* type = DeclaredType(node.op))
      dtypes[*DeclaredName(node.op)] = type->dtype;
  }
  return [=](const std::string& name, int rank, int64_t index) {
    const double x = drawn(name, rank, index).real();
    if (!IsFloat(dtypes.at(name))) return std::floor(4 + 5 * x);
    const double more = 0.25 + std::ldexp(drawn(name + "_1", rank, index).real(), -8) +
                        std::ldexp(drawn(name + "_2", rank, index).real(), -15);
    return x < 0 ? x - more : x + more;
  };
}

struct Case {
  const char* declarations;
  const char* loss;
  const char* of;  // names, by spaces
};

/// The program of a case with its gradients.
std::string TextOf(const Case& c) {
  std::string text = absl::StrCat("coconet 1\n", c.declarations, "loss = ", c.loss, "\n");
  for (absl::string_view name : absl::StrSplit(c.of, ' '))
    absl::StrAppend(&text, "output d_", name, " = grad(loss, ", name, ")\n");
  return absl::StrCat(text, "output loss = loss\n");
}

void Check(const Case& c, uint64_t seed) {
  const absl::StatusOr<Graph> program = Parse(TextOf(c));
  ASSERT_TRUE(program.ok()) << program.status() << "\n" << TextOf(c);
  for (int ranks : {1, 2, 3}) {
    const absl::StatusOr<DifferencesReport> report =
        CompareWithDifferences(*program, ranks, Elements(*program, seed), seed);
    ASSERT_TRUE(report.ok()) << report.status() << "\n"
                             << ranks << " ranks, COCONET_SEED=" << seed << "\n"
                             << TextOf(c) << Print(*program);
    EXPECT_GT(report->checked, 9 * report->skipped) << TextOf(c) << " COCONET_SEED=" << seed;
  }
}

constexpr char kTwo[] =
    "input x : f32[5, 6] local\ninput w : f32[5, 6] replicated\n"
    "input u : f32[6] replicated\ninput s : f32[] replicated\n";

TEST(Gradient, OfElementwiseFunctions) {
  const uint64_t seed = Seed();
  for (const char* f : {"x + w",
                        "x - w",
                        "x * w",
                        "x / (2 + abs(w))",
                        "w / (2 + abs(x))",
                        "-w + x",
                        "abs(w) * x",
                        "sign(w) * x + w",
                        "min(x, w)",
                        "max(x, w)",
                        "pow(2 + w, x)",
                        "pow(2 + x, w)",
                        "sqrt(2 + w) * x",
                        "rsqrt(2 + w) * x",
                        "exp(w) * x",
                        "log(2 + w) * x",
                        "log1p(1 + w) * x",
                        "expm1(w) * x",
                        "sin(3 * w) * cos(x)",
                        "rem(x, 2.5 + 0.01 * w)",
                        "(floor(0.1 * w) + ceil(0.1 * x) + round(0.1 * w)) * w + x",
                        "tanh(w) * x",
                        "erf(w) * x",
                        "sigmoid(w) * x",
                        "relu(w) * x",
                        "gelu(w) * x",
                        "silu(w) * x",
                        "select(x > 0, w, x * w)",
                        "select(w > x, w * w, 3 * x)"}) {
    Check({kTwo, absl::StrCat("all_reduce(sum, sum(", f, "))").c_str(), "x w"}, seed);
    Check({kTwo, absl::StrCat("mean(", f, ")").c_str(), "x w"}, seed);
  }
}

/// The elements of `what` in a program of x and k, on one rank.
std::vector<double> AtEdge(const std::string& what, const std::vector<double>& x,
                           const std::vector<double>& k) {
  const auto count = static_cast<int64_t>(x.size());
  const absl::StatusOr<Graph> program =
      Parse(absl::StrCat("coconet 1\ninput x : f32[", count, "] local\ninput k : f32[", count,
                         "] local\noutput d = ", what, "\n"));
  EXPECT_TRUE(program.ok()) << program.status() << "\n" << what;
  if (!program.ok()) return {};
  const absl::StatusOr<Interpreter> interpreter = Interpreter::Create(*program, 1);
  std::vector<int64_t> all(x.size());
  std::iota(all.begin(), all.end(), 0);
  const absl::StatusOr<Expected> d =
      interpreter->Evaluate("d", 0, all, [&](const std::string& name, int, int64_t i) {
        return (name == "x" ? x : k)[static_cast<size_t>(i)];
      });
  EXPECT_TRUE(d.ok()) << d.status();
  std::vector<double> values;
  for (const Number& value : d.ok() ? d->value : std::vector<Number>())
    values.push_back(value.real());
  return values;
}

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// What PyTorch 2 gives, and JAX where it does not say otherwise.
TEST(Gradient, OfPowersAtEdges) {
  const std::vector<double> x = {0, 0, 0, 0, 0, 0, -2, -2, -2, -2, 0, 0, 2, 2, -0.0, -0.0},
                            k = {0, .5, 1, 2, 3, -1, 0, 1, 2, 3, 1.5, -.5, 0, 2, 0, 1};
  EXPECT_THAT(AtEdge("grad(sum(pow(x, k)), x)", x, k),
              testing::Pointwise(NanSensitiveDoubleEq(),
                                 std::vector<double>{0, kInf, 1, 0, 0, -kInf, 0, 1, -4, 12, 0,
                                                     -kInf, 0, 4, 0, 1}));
  // By the exponent, JAX has NaN for 0 to a negative power.
  const double log4 = 4 * std::log(2);
  EXPECT_THAT(AtEdge("grad(sum(pow(x, k)), k)", x, k),
              testing::Pointwise(NanSensitiveDoubleNear(1e-6),
                                 std::vector<double>{0, 0, 0, 0, 0, -kInf, kNan, kNan, kNan, kNan,
                                                     0, -kInf, std::log(2), log4, 0, 0}));
  EXPECT_THAT(AtEdge("grad(sum(pow(x, 0)), x)", {0, -1, 2}, {0, 0, 0}), ElementsAre(0, 0, 0));
  EXPECT_THAT(AtEdge("grad(sum(pow(x, 1)), x)", {0, -1, 2}, {0, 0, 0}), ElementsAre(1, 1, 1));
  EXPECT_THAT(AtEdge("grad(sum(pow(x, 3)), x)", {0, -1, 2}, {0, 0, 0}), ElementsAre(0, 3, 12));
}

TEST(Gradient, OfOtherFunctionsAtEdges) {
  const struct {
    const char* f;
    double x, gradient;
  } kCases[] = {{"abs(x)", 0, 0},
                {"abs(x)", -0.0, 0},
                {"relu(x)", 0, 0},
                {"max(x, 0)", 0, .5},
                {"min(x, 1)", 1, .5},
                // A NaN passes the gradient on; in JAX, it gives 0.
                {"abs(x)", kNan, kNan},
                {"relu(x)", kNan, 1},
                {"max(x, 0)", kNan, 1},
                {"max(x, k)", kNan, 1},
                {"min(1, x)", kNan, 1},
                {"max(x, 0 / k)", 2, 1},
                {"sqrt(x)", 0, kInf},
                {"sqrt(x)", kInf, 0},
                {"sqrt(x)", -1, kNan},
                {"rsqrt(x)", 0, -kInf},
                {"log(x)", 0, kInf},
                {"log(x)", -1, -1},
                {"log1p(x)", -1, kInf},
                {"1 / x", 0, -kInf},
                {"x / x", 0, kNan},
                {"sigmoid(x)", -kInf, 0},
                {"tanh(x)", kInf, 0},
                {"expm1(x)", -kInf, 0},
                // The derivative of the other branch counts, times 0.
                {"select(x > 0, sqrt(x), 0)", 0, kNan},
                {"select(x > 0, sqrt(select(x > 0, x, 1)), 0)", 0, 0},
                {"sqrt(x * x)", 0, kNan},
                {"pow(x * x, 0.5)", 0, kNan}};
  for (const auto& c : kCases) {
    EXPECT_THAT(AtEdge(absl::StrCat("grad(sum(", c.f, "), x)"), {c.x}, {0}),
                testing::Pointwise(NanSensitiveDoubleEq(), std::vector<double>{c.gradient}))
        << c.f << " at " << c.x;
  }
  // Norms, as in JAX; torch.norm gives 0.
  EXPECT_THAT(AtEdge("grad(sqrt(sum(x * x)), x)", {0, 0}, {0, 0}),
              testing::Pointwise(NanSensitiveDoubleEq(), std::vector<double>{kNan, kNan}));
  EXPECT_THAT(AtEdge("grad(sqrt(max(sum(x * x), 1e-30)), x)", {0, 0}, {0, 0}), ElementsAre(0, 0));
  EXPECT_THAT(AtEdge("grad(sum(amax(x, 0)), x)", {3, 3, 1}, {0, 0, 0}), ElementsAre(.5, .5, 0));
}

TEST(Gradient, OfAnExtremumThatIsNaNIsNaN) {
  const char* const kExtrema[] = {"amax(x, 0)", "amin(x, 0)", "amax(x)", "all_reduce(max, x)",
                                  "all_reduce(min, amin(x))"};
  for (const std::string f : kExtrema) {
    const std::string gradient = absl::StrCat("grad(sum(", f, "), x)");
    for (double d : AtEdge(gradient, {1, kNan, 3}, {0, 0, 0})) {
      const bool is_each = f == "all_reduce(max, x)";  // whose elements are extrema of their own
      EXPECT_TRUE(std::isnan(d) || is_each) << f;
    }
    for (double d : AtEdge(gradient, {kInf, 2, -kInf}, {0, 0, 0})) EXPECT_FALSE(std::isnan(d)) << f;
  }
  EXPECT_THAT(AtEdge("grad(sum(all_reduce(max, x)), x)", {1, kNan}, {0, 0}),
              testing::Pointwise(NanSensitiveDoubleEq(), std::vector<double>{1, kNan}));
}

TEST(Gradient, OfWhatIsBroadcast) {
  const uint64_t seed = Seed();
  for (const char* f :
       {"x * u", "x * u * s", "x + u + s", "w * u", "u * s", "exp(s) * x * u", "(w + x) * (u - s)",
        "sum(x, 0) * u + s", "mean(x, 1) * w", "amax(x, 1) * u", "amin(w, 0) * u * x",
        "softmax(x * u) * w", "layer_norm(x + u, 0.01) * w", "rms_norm(w * x, 0.01) * u + s"}) {
    const std::string sum = absl::StrCat("sum(", f, ")");
    Check({kTwo, absl::StrCat("all_reduce(sum, ", sum, " * sum(x))").c_str(), "x"}, seed);
    Check({kTwo, absl::StrCat("sum(x) * mean(", f, ")").c_str(), "x"}, seed);
  }
  Check({kTwo, "all_reduce(sum, sum(x * u * s))", "x u s"}, seed);
  Check({kTwo, "sum((w + x) * (u - s))", "x w u s"}, seed);
  Check({kTwo, "sum(w * u) * s", "w u s"}, seed);
  Check({kTwo, "sum(x + s)", "x s"}, seed);
  Check({kTwo, "sum(rms_norm(w * x, 0.01) * u) + s * sum(x)", "x w u s"}, seed);
  Check({kTwo, "sum(softmax(x * u) * w)", "x w u"}, seed);
}

TEST(Gradient, OfProducts) {
  const uint64_t seed = Seed();
  for (const char* product : {"matmul(a, b)", "matmul(transpose(a, 1, 0), b, transpose_a)",
                              "matmul(a, transpose(b, 1, 0), transpose_b)",
                              "matmul(transpose(a, 1, 0), transpose(b, 1, 0), transpose_a, "
                              "transpose_b)"}) {
    for (const char* layouts : {"local replicated", "replicated replicated", "local local"}) {
      const std::vector<std::string> words = absl::StrSplit(layouts, ' ');
      const std::string declarations =
          absl::StrCat("input a : f32[4, 3] ", words[0], "\ninput b : f32[3, 5] ", words[1],
                       "\ninput r : f32[4, 5] local\n");
      Check({declarations.c_str(), absl::StrCat("sum(r * ", product, ")").c_str(), "a b r"}, seed);
    }
  }
  const char* kBatched =
      "input a : f32[2, 4, 3] local\ninput b : f32[3, 5] replicated\n"
      "input c : f32[2, 5, 4] replicated\ninput r : f32[2, 4, 5] local\n";
  Check({kBatched, "sum(r * matmul(a, b))", "a b r"}, seed);
  Check({kBatched, "sum(matmul(matmul(a, b), c))", "a b c"}, seed);
  Check({kBatched, "sum(matmul(transpose(b, 1, 0), a, transpose_b))", "a b"}, seed);
}

TEST(Gradient, OfViewsAndRows) {
  const uint64_t seed = Seed();
  const char* kViews =
      "input x : f32[4, 6] local\ninput t : f32[7, 6] replicated\ninput i : i32[4] local\n"
      "input j : i32[4, 3] local\ninput o : f32[4, 3] local\ninput d : i64[] replicated\n";
  for (const char* f :
       {"transpose(x, 1, 0) * transpose(x * x, 1, 0)", "reshape(x * x, [2, 12])", "x[1:3] * 2",
        "x[:, 2:5] * x[:, :3]", "concat(x[:, 4:], x[:, :4], 1) * x", "concat(x, x * x, 0)",
        "x[:, 0:2] * x[:, 2:4] + x[:, 4:6]", "reverse(x, 0, 1) * x", "reverse(x * x, 1) * x",
        "expand(x[:, 0:1] * x[:, 1:2], [3, 4, 6]) * x * x", "dropout(x, d, 0.25, 3)"}) {
    Check({kViews, absl::StrCat("sum(", f, ")").c_str(), "x"}, seed);
  }
  Check({kViews, "sum(x * gather(t, i, 0))", "x t"}, seed);
  Check({kViews, "sum(matmul(x, gather(t, i, 0), transpose_b) * gather(t, i, 0)[:, :4])", "x t"},
        seed);
  Check({kViews, "sum(gather(transpose(t, 1, 0), i, 1) * transpose(x, 1, 0))", "x t"}, seed);
  Check({kViews, "sum(x * embedding_bag(t, j, sum))", "x t"}, seed);
  Check({kViews, "sum(x * embedding_bag(t, j, mean))", "x t"}, seed);
  Check({kViews, "sum(x * embedding_bag(t, j, o, sum))", "x t o"}, seed);
  Check({kViews, "sum(t * scatter_add(x, i, [7, 6]))", "x t"}, seed);
  Check({kViews, "sum(t * scatter_add(reshape(x, [4, 1, 6]), j, o, [7, 6]))", "x t o"}, seed);
  Check({kViews, "mean(cross_entropy(x, i))", "x"}, seed);
}

TEST(Gradient, StopsWhereItIsTold) {
  const absl::StatusOr<Graph> program = Parse(
      "coconet 1\ninput x : f32[3] replicated\nloss = sum(x * stop_gradient(x))\n"
      "output d = grad(loss, x)\n");
  ASSERT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<Interpreter> interpreter = Interpreter::Create(*program, 1);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  const absl::StatusOr<Expected> d = interpreter->Evaluate(
      "d", 0, {0, 1, 2}, [](const std::string&, int, int64_t index) { return 2.0 + index; });
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT(d->value, ::testing::ElementsAre(2, 3, 4)) << "x, not 2 x";
}

TEST(Gradient, OfOneRowOfSlices) {
  const char* kRow = "input x : f32[1, 4, 6] local\ninput i : i32[] replicated\n";
  Check({kRow, "all_reduce(sum, sum(gather(reduce_scatter(sum, x * x, 0), i, 1)))", "x"}, Seed());
}

TEST(Gradient, OfCollectives) {
  const uint64_t seed = Seed();
  const char* kParts =
      "input x : f32[6, 6] local\ninput y : f32[6, 6] sliced(0)\ninput z : f32[6, 6] sliced(1)\n"
      "input w : f32[6, 6] replicated\ninput v : f32[6] replicated\ninput u : f32[6] local\n"
      "input q : f32[6, 6] sliced(flat)\ninput p : f32[1, 6] sliced(0, by 1+2/3)\n";
  for (const char* f : {"all_reduce(sum, x) * w",
                        "x * all_reduce(sum, x * x) * w",
                        "all_reduce(max, x) * w * x",
                        "reduce_scatter(sum, x, 0) * y",
                        "reduce_scatter(sum, x * w, 1) * z",
                        "all_gather(y) * x * w",
                        "all_gather(z * z) * w",
                        "all_gather(y) * w + x",
                        "shard(w, 0) * y",
                        "shard(w * w, 1) * z * z",
                        "all_to_all(y, 1) * z",
                        "all_to_all(z * v, 0) * y * y",
                        "broadcast(x, 0) * w",
                        "broadcast(x * x, 0) * x",
                        "reduce(sum, x, 0) * x * w",
                        "y * v * y",
                        "z * v + z",
                        "y * w",
                        "all_reduce(sum, matmul(z, y)) * x",
                        "matmul(y, w) * y",
                        "matmul(w, z) * z",
                        "softmax(z) * z",
                        "rms_norm(z * v, 0.01) * z",
                        "q * v + q",
                        "q * u * q",
                        "mean(y * w) * x * y",
                        "p * p * reshape(x, [6, 1, 6])",
                        "reshape(shard(v, 0), [1, 6]) * v",
                        "all_reduce(sum, sum(y, 0)) * x"}) {
    const std::string loss = absl::StrCat("sum(", f, ")");
    std::string of;
    for (const char* name : {"x", "y", "z", "w", "v", "u", "q", "p"}) {
      // The names that stand alone.
      for (size_t at = 0; (at = loss.find(name, at)) != std::string::npos; ++at) {
        if (std::isalpha(loss[at - 1]) || std::isalpha(loss[at + 1])) continue;
        absl::StrAppend(&of, of.empty() ? "" : " ", name);
        break;
      }
    }
    Check({kParts, loss.c_str(), of.c_str()}, seed);
  }
}

/// Whether the program takes a root of zero, or an extremum or a mean of no elements. None has a
/// gradient, whatever is done with it.
bool IsSingular(const Graph& program, int ranks, const ElementSource& source) {
  Graph watched = program;
  std::vector<std::string> names;
  for (NodeId id = 0; id < program.size(); ++id) {
    const Op& op = program.nodes[id].op;
    const auto* pointwise = std::get_if<Pointwise>(&op);
    const bool is_root = pointwise != nullptr && pointwise->fn == Pw::kSqrt;
    if (!is_root && !std::holds_alternative<Fold>(op)) continue;
    names.push_back(absl::StrCat(is_root ? "root" : "fold", id));
    watched.nodes.push_back({Output{names.back()}, {id}});
  }
  const absl::StatusOr<Interpreter> interpreter = Interpreter::Create(watched, ranks);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status() << Print(watched);
  if (!interpreter.ok()) return false;
  for (const std::string& name : names) {
    std::vector<int64_t> all(NumElements(interpreter->type(name).shape));
    absl::c_iota(all, 0);
    for (int rank = 0; rank < ranks; ++rank) {
      const absl::StatusOr<Expected> values = interpreter->Evaluate(name, rank, all, source);
      EXPECT_TRUE(values.ok()) << values.status() << Print(watched);
      const bool is_root = absl::StartsWith(name, "root");
      const auto is_singular = [&](const Number& x) {
        return !x.is_finite() || (is_root && x == 0);
      };
      if (values.ok() && absl::c_any_of(values->value, is_singular)) return true;
    }
  }
  return false;
}

TEST(Gradient, OfRandomPrograms) {
  const uint64_t first = Seed();
  int64_t checked = 0, skipped = 0;
  int without = 0;
  constexpr int kPrograms = 150;
  for (int i = 0; i < kPrograms; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    const Graph drawn =
        RandomProgram(seed, {.operations = 10, .max_elements = 60, .all_dtypes = false});
    // The loss is the latest value that can be summed.
    std::string text = Print(drawn);
    const absl::StatusOr<std::vector<TensorType>> types = InferTypes(drawn);
    ASSERT_TRUE(types.ok()) << types.status();
    const bool rounds = absl::c_any_of(*types, [](const TensorType& type) {
      return type.dtype == DType::kF16 || type.dtype == DType::kBF16;
    });
    if (rounds) continue;  // by steps, which differences are not of
    NodeId value = drawn.size() - 1;
    const auto is_loss = [&](NodeId id) {
      const Role role = RoleOf(drawn.nodes[id].op);
      const Layout& layout = (*types)[id].layout;
      return role != Role::kStore && role != Role::kDeclaration && role != Role::kConstant &&
             (*types)[id].dtype == DType::kF32 && !layout.owned() && !layout.by_place();
    };
    while (value >= 0 && !is_loss(value)) --value;
    if (value < 0) continue;
    absl::StrAppend(&text, "loss = sum(%", value, " * %", value, ")\n");
    std::string with = text;
    for (NodeId id = 0; id < drawn.size(); ++id) {
      const TensorType* type = DeclaredType(drawn.nodes[id].op);
      if (type == nullptr || type->dtype != DType::kF32) continue;
      const std::string& name = *DeclaredName(drawn.nodes[id].op);
      const std::string line = absl::StrCat("output d_", name, " = grad(loss, ", name, ")\n");
      const absl::StatusOr<Graph> one = Parse(absl::StrCat(text, line));
      if (one.ok()) {
        with += line;
        continue;
      }
      EXPECT_THAT(std::string(one.status().message()),
                  AllOf(HasSubstr("grad: "), Not(HasSubstr("cannot be computed"))))
          << text << line << "COCONET_SEED=" << seed;
    }
    with += "output loss = loss\n";
    const absl::StatusOr<Graph> program = Parse(with);
    ASSERT_TRUE(program.ok()) << program.status() << with;
    const ElementSource elements = Elements(*program, seed);
    if (IsSingular(drawn, 2, elements)) {
      ++without;
      continue;
    }
    const absl::StatusOr<DifferencesReport> report =
        CompareWithDifferences(*program, 2, elements, seed, /*most=*/6);
    ASSERT_TRUE(report.ok()) << report.status() << "\nCOCONET_SEED=" << seed << "\n"
                             << with << Print(*program);
    checked += report->checked;
    skipped += report->skipped;
    without += report->checked == 0;
  }
  EXPECT_GT(checked, 9 * skipped) << "COCONET_SEED=" << first;
  EXPECT_LT(without, kPrograms / 2) << "COCONET_SEED=" << first;
}

std::string MistakeIn(const std::string& statements) {
  return std::string(Parse(absl::StrCat("coconet 1\n", statements)).status().message());
}

TEST(Gradient, RefusesWhatHasNone) {
  const std::string inputs =
      "input x : f32[4] local\ninput w : f32[4] replicated\ninput i : i32[4] local\n";
  EXPECT_THAT(MistakeIn(inputs + "output y = grad(x, w)\n"),
              HasSubstr("want a loss that is a scalar of floats"));
  EXPECT_THAT(MistakeIn(inputs + "output y = grad(sum(i), w)\n"),
              HasSubstr("want a loss that is a scalar of floats"));
  EXPECT_THAT(MistakeIn(inputs + "output y = grad(sum(x), w)\n"),
              HasSubstr("does not depend on w : f32[4] replicated"));
  EXPECT_THAT(MistakeIn(inputs + "output y = grad(sum(stop_gradient(w) * x), w)\n"),
              HasSubstr("does not depend on w"));
  EXPECT_THAT(MistakeIn(inputs + "output y = grad(sum(reduce_scatter(max, x, 0)), x)\n"),
              HasSubstr("has no gradient: want a sum over all ranks"));
  EXPECT_THAT(MistakeIn(inputs + "output y = grad(sum(embedding_bag(reshape(w, [2, 2]), i, i, "
                                 "sum)), w)\n"),
              HasSubstr("has no gradient with respect to"));
  EXPECT_THAT(MistakeIn("input x : f32[8] sliced(0, by 1+2/8)\n"
                        "output y = grad(sum(all_gather(x)), x)\n"),
              HasSubstr("want slices of one size"));
  EXPECT_THAT(MistakeIn("input x : f32[N] local\noutput y = grad(sum(x[1:2]), x)\n"),
              HasSubstr("bind its sizes"));
  EXPECT_THAT(MistakeIn("input x : f32[4, 4] replicated\n"
                        "output y = grad(sum(matmul(cast(f8e4m3, x), cast(f8e5m2, x))), x)\n"),
              HasSubstr("to whose 8 bits it would be rounded; multiply casts"));
  EXPECT_THAT(MistakeIn("input x : f8e4m3[4, 4] replicated\ninput s : f32[4, 1] replicated\n"
                        "output y = grad(sum(matmul(x, x, s, s)), s)\n"),
              HasSubstr("has no gradient with respect to s : f32[4, 1] replicated, the scales of "
                        "8-bit floats; multiply casts"));
}

TEST(Gradient, ReducesEachGradientOnce) {
  const absl::StatusOr<Graph> program = Parse(
      "coconet 1\ninput x : f32[8, 4] local\nstate w : f32[4, 4] replicated\n"
      "state b : f32[4] replicated\nh = relu(matmul(x, w) + b)\n"
      "loss = mean(matmul(h, w) + b)\n"
      "update(w, w - 0.1 * grad(loss, w))\nupdate(b, b - 0.1 * grad(loss, b))\n");
  ASSERT_TRUE(program.ok()) << program.status();
  const Graph canonical = Canonicalize(*program).graph;
  int reductions = 0, products = 0;
  for (const Node& node : canonical.nodes) {
    reductions += std::holds_alternative<struct AllReduce>(node.op);
    products += std::holds_alternative<struct MatMul>(node.op);
  }
  EXPECT_EQ(reductions, 2) << Print(canonical);
  EXPECT_EQ(products, 5) << "two forward, two by w, one by h; none by x\n" << Print(canonical);
}

TEST(Gradient, SharesWorkBetweenStates) {
  // Each call would else add the whole backward pass.
  std::string text = "coconet 1\ninput x : f32[2, 4] local\nv0 = x\n";
  constexpr int kLayers = 40;
  for (int i = 0; i < kLayers; ++i)
    absl::StrAppend(&text, "state w", i, " : f32[4, 4] replicated\nv", i + 1, " = tanh(matmul(v", i,
                    ", w", i, "))\n");
  absl::StrAppend(&text, "loss = mean(v", kLayers, ")\n");
  for (int i = 0; i < kLayers; ++i)
    absl::StrAppend(&text, "update(w", i, ", w", i, " - grad(loss, w", i, "))\n");
  const absl::StatusOr<Graph> program = Parse(text);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_LT(program->size(), kLayers * 20);
}

}  // namespace
}  // namespace coconet
