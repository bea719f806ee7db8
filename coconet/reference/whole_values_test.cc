// What an evaluator computes once and keeps, and what it computes anew for each block: to the bit
// the same.

#include "coconet/reference/whole_values.h"

#include <bit>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/language/text.h"
#include "coconet/reference/interpreter.h"
#include "coconet/testing/random_elements.h"
#include "coconet/testing/random_program.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

Expected AllOf(Evaluator& evaluator, const Interpreter& interpreter, const std::string& result,
               int rank) {
  std::vector<int64_t> indices(NumElements(interpreter.type(result).shape));
  std::iota(indices.begin(), indices.end(), 0);
  absl::StatusOr<Expected> all = evaluator.Evaluate(result, rank, indices);
  EXPECT_TRUE(all.ok()) << all.status();
  return all.value_or(Expected());
}

bool AreSame(const Number& a, const Number& b) {
  if (a.is_integer() || b.is_integer()) return a.is_integer() == b.is_integer() && a == b;
  return std::bit_cast<uint64_t>(a.real()) == std::bit_cast<uint64_t>(b.real()) ||
         (a.is_nan() && b.is_nan());
}

void ExpectSame(const Expected& kept, const Expected& anew, const std::string& what) {
  ASSERT_EQ(kept.value.size(), anew.value.size());
  for (size_t i = 0; i < kept.value.size(); ++i) {
    EXPECT_TRUE(AreSame(kept.value[i], anew.value[i])) << what << "[" << i << "]";
    EXPECT_EQ(std::bit_cast<uint64_t>(kept.error[i]), std::bit_cast<uint64_t>(anew.error[i]))
        << what << "[" << i << "]";
  }
}

/// Compares all results of a program, on all ranks, with and without what is kept. Returns whether
/// something is.
bool Compare(const Graph& program, int ranks, const ElementSource& source,
             const std::string& context) {
  absl::StatusOr<Interpreter> interpreter = Interpreter::Create(program, ranks);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status() << context;
  if (!interpreter.ok()) return false;
  for (int rank = 0; rank < ranks; ++rank) {
    Evaluator kept(*interpreter, source), anew(*interpreter, source);
    kept.KeepWholeValues();
    for (const std::string& result : interpreter->results()) {
      const std::string what = absl::StrCat(result, " on rank ", rank, context);
      const Expected want = AllOf(anew, *interpreter, result, rank);
      ExpectSame(AllOf(kept, *interpreter, result, rank), want, what);
      if (result.size() % 2 == 0) kept.Forget();
      ExpectSame(AllOf(kept, *interpreter, result, rank), want, what);
    }
  }
  const TypedGraph typed = *TypedGraph::Of(program);
  return !WholeNodes({typed, ranks, 1, 1, source}, int64_t{1} << 40).empty();
}

TEST(WholeValues, ResultsOfRandomProgramsAreTheSame) {
  int kept = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    for (const ProgramKind kind : {ProgramKind::kStep, ProgramKind::kModel}) {
      const Graph g = RandomProgram(seed, {.kind = kind, .operations = 24, .max_elements = 300});
      const std::string context =
          absl::StrCat(", seed ", seed, " of kind ", static_cast<int>(kind));
      kept += Compare(g, 1 + static_cast<int>(seed % 3), RandomElements(seed, g), context) ? 1 : 0;
    }
  }
  EXPECT_GT(kept, 20);
}

/// T steps of a recurrence whose state s no product takes, and its result.
std::string Recurrence(int steps) {
  std::string text =
      "coconet 1\nprogram recurrence\ninput w : f32[5, 5] replicated\ninput g : f32[3, 5] local\n";
  for (int t = 0; t < steps; ++t) absl::StrAppend(&text, "input x", t, " : f32[3, 5] replicated\n");
  absl::StrAppend(&text, "s0 = all_reduce(sum, g)\nh0 = tanh(s0)\n");
  for (int t = 0; t < steps; ++t) {
    absl::StrAppend(&text, "a", t, " = matmul(h", t, ", w) + x", t, "\ns", t + 1, " = s", t,
                    " * sigmoid(a", t, ") + a", t, "\nh", t + 1, " = tanh(s", t + 1, ")\n");
  }
  return absl::StrCat(text, "output y = h", steps, "\n");
}

/// The elements of inputs that are read to compute all of y.
int64_t ReadsOf(int steps, bool keeps) {
  const absl::StatusOr<Graph> g = Parse(Recurrence(steps));
  EXPECT_TRUE(g.ok()) << g.status();
  int64_t reads = 0;
  const ElementSource elements = RandomElements(3);
  const ElementSource counting = ElementSource::OfMany(
      [&](const std::string& name, int rank, absl::Span<const int64_t> at, Number* out) {
        reads += static_cast<int64_t>(at.size());
        elements.Read(name, rank, at, out);
      });
  const absl::StatusOr<Interpreter> interpreter = Interpreter::Create(*g, 2);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status();
  Evaluator evaluator(*interpreter, counting);
  if (keeps) evaluator.KeepWholeValues();
  AllOf(evaluator, *interpreter, "y", 0);
  return reads;
}

TEST(WholeValues, ComputeTheStepsOfARecurrenceOnce) {
  EXPECT_TRUE(Compare(*Parse(Recurrence(6)), 2, RandomElements(1), ""));
  const int64_t few = ReadsOf(8, true), many = ReadsOf(32, true);
  EXPECT_LT(many, 5 * few);
  EXPECT_GT(ReadsOf(32, false), 2 * many);
}

TEST(WholeValues, AreNotKeptWithoutNeedOrRoom) {
  const auto kept = [](const std::string& statements, int64_t most) {
    const TypedGraph typed =
        *TypedGraph::Of(*Parse("coconet 1\ninput g : f32[7, 9] local\n" + statements));
    return WholeNodes({typed, 2, 1, 1, RandomElements(1)}, most);
  };
  EXPECT_TRUE(kept("a = all_reduce(sum, g)\noutput y = a * a + 1\n", 1 << 20).empty());
  const std::string folds = "a = all_reduce(sum, g) * 2\noutput y = a - sum(a, 1)\n";
  EXPECT_FALSE(kept(folds, 1 << 20).empty());
  EXPECT_TRUE(kept(folds, 62).empty());
  EXPECT_FALSE(kept(folds, 63).empty());
}

}  // namespace
}  // namespace coconet
