// Runs of arithmetic, and the same operations one by one: to the bit the same.

#include "coconet/reference/pointwise_runs.h"

#include <bit>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "coconet/language/text.h"
#include "coconet/reference/evaluation.h"
#include "coconet/testing/random_elements.h"
#include "coconet/testing/random_program.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

bool AreSame(const Bounded& a, const Bounded& b, size_t i) {
  const Number &x = a.value[i], &y = b.value[i];
  const bool same_value =
      x.is_integer() || y.is_integer()
          ? x.is_integer() == y.is_integer() && x == y
          : std::bit_cast<uint64_t>(x.real()) == std::bit_cast<uint64_t>(y.real()) ||
                (x.is_nan() && y.is_nan());
  return same_value && std::bit_cast<uint64_t>(a.error[i]) == std::bit_cast<uint64_t>(b.error[i]);
}

/// Compares all results of a program on all ranks. Returns the number of its runs.
size_t Compare(const Graph& program, int ranks, const ElementSource& source,
               const std::string& context) {
  const absl::StatusOr<TypedGraph> typed = TypedGraph::Of(program);
  EXPECT_TRUE(typed.ok()) << typed.status() << context;
  if (!typed.ok()) return 0;
  const Evaluated e{*typed, ranks, 1, 1, source};
  EvaluationCache with, without;
  with.runs = RunsOf(e, {});
  for (NodeId id = 0; id < typed->size(); ++id) {
    if (!std::holds_alternative<Update>(typed->op(id)) &&
        !std::holds_alternative<Output>(typed->op(id)))
      continue;
    std::vector<int64_t> all(NumElements(typed->type(id).shape));
    std::iota(all.begin(), all.end(), 0);
    for (int rank = 0; rank < ranks; ++rank) {
      const Bounded runs = *EvaluateBlock(e, with, id, rank, all),
                    steps = *EvaluateBlock(e, without, id, rank, all);
      EXPECT_EQ(runs.exact, steps.exact) << "node " << id << context;
      for (size_t i = 0; i < all.size(); ++i) {
        const Bounded& one = runs.size() == 1 ? runs : steps;
        if (one.size() == 1 && i > 0) break;
        EXPECT_TRUE(AreSame(runs, steps, i))
            << "node " << id << "[" << i << "] on rank " << rank << context << ": "
            << runs.value[i].real() << " +- " << runs.error[i] << ", one by one "
            << steps.value[i].real() << " +- " << steps.error[i];
      }
    }
  }
  return with.runs.size();
}

TEST(PointwiseRuns, AreTheStepsOfRandomPrograms) {
  size_t runs = 0;
  for (uint64_t seed = 100; seed < 180; ++seed) {
    for (const ProgramKind kind : {ProgramKind::kStep, ProgramKind::kModel}) {
      const Graph g = RandomProgram(seed, {.kind = kind, .operations = 24, .max_elements = 300});
      runs += Compare(g, 1 + static_cast<int>(seed % 3), RandomElements(seed, g),
                      absl::StrCat(", seed ", seed, " of kind ", static_cast<int>(kind)));
    }
  }
  EXPECT_GT(runs, 40u);
}

/// A chain of arithmetic that takes values twice, from outside and from both sides.
std::string Chain(const std::string& type, const std::vector<std::string>& steps, int length,
                  uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text =
      absl::StrCat("coconet 1\nprogram chain\ninput g : ", type, "[700] local\nstate p : ", type,
                   "[700] replicated\nv0 = all_reduce(sum, g)\nv1 = v0 + p\n");
  for (int i = 2; i < length; ++i) {
    std::string step = steps[random() % steps.size()];
    const std::string names[] = {absl::StrCat("v", i - 1), absl::StrCat("v", i - 1 - random() % 2)};
    absl::StrAppend(&text, "v", i, " = ", absl::Substitute(step, names[0], names[1]), "\n");
  }
  return absl::StrCat(text, "update(p, v", length - 1, ")\n");
}

TEST(PointwiseRuns, AreTheStepsOfLongChains) {
  for (const std::string type : {"f32", "f64", "f16", "bf16"}) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const absl::StatusOr<Graph> g =
          Parse(Chain(type,
                      {"$0 * 0.999", "$0 + $1", "0.5 - $0", "$0 - p", "max($0, $1)", "-$0",
                       "$0 / $1", "sqrt($0)", "tanh($0)", "$0 * 2", "abs($0)"},
                      60, seed));
      ASSERT_TRUE(g.ok()) << g.status();
      const std::string context = absl::StrCat(", ", type, ", seed ", seed);
      EXPECT_GT(Compare(*g, 2, RandomElements(seed, *g), context), 0u) << context;
    }
  }
}

TEST(PointwiseRuns, AreTheStepsOfChainsOfIntegers) {
  for (const std::string type : {"i8", "i16", "i32", "i64", "u8", "u32", "u64"}) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const absl::StatusOr<Graph> g = Parse(
          Chain(type, {"$0 * 3", "$0 + $1", "100 - $0", "$0 * p", "max($0, $1)", "$0 / $1", "-$0"},
                60, seed));
      ASSERT_TRUE(g.ok()) << g.status();
      const std::string context = absl::StrCat(", ", type, ", seed ", seed);
      EXPECT_GT(Compare(*g, 2, RandomElements(seed, *g), context), 0u) << context;
    }
  }
}

TEST(PointwiseRuns, HaveAllStepsOfAChainButNoneThatIsKept) {
  const Graph g = *Parse(
      "coconet 1\ninput g : f32[700] replicated\na = g * 2\nb = a + 1\nc = b * b\n"
      "output y = c - g\n");
  const TypedGraph typed = *TypedGraph::Of(g);
  const Evaluated e{typed, 1, 1, 1, RandomElements(1)};
  const std::map<NodeId, PointwiseRun> runs = RunsOf(e, {});
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs.begin()->second.given().size(), 1u);
  std::vector<bool> kept(typed.size());
  const NodeId last = runs.begin()->first;
  kept[e.input(last, 0)] = true;
  EXPECT_EQ(RunsOf(e, kept).size(), 1u);
  EXPECT_EQ(RunsOf(e, kept).begin()->first, e.input(last, 0));
}

}  // namespace
}  // namespace coconet
