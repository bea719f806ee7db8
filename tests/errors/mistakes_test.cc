// The mistakes of earlier code for the same task (a published compiler of such schedules and its
// generated kernels), each as a test of ours.

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/language/text.h"
#include "coconet/reference/interpreter.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/harness/machine.h"
#include "tests/harness/random_config.h"
#include "tests/harness/sample.h"
#include "tests/harness/test_data.h"
#include "tests/harness/variant_batch.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

constexpr int kSteps = 2;

Graph Bound(absl::string_view name, int64_t n, const WorkloadOptions& options = {}) {
  return BindSizes(*MakeWorkload(name, options), {{"N", n}}).value();
}

Graph Parsed(absl::string_view text) {
  return Parse(absl::StrCat("coconet 1\nprogram p\n", text)).value();
}

/// Adds the schedules of `program` that `wanted` takes; how many there were.
template <class Wanted>
int AddSchedules(const Graph& program, int ranks, std::mt19937_64& random, Wanted wanted,
                 VariantBatch& batch) {
  int added = 0;
  const Config compiled = DrawCompiledConfig(random);
  const std::vector<Schedule> schedules = Derive(program).value();
  for (const Schedule& schedule : schedules) {
    if (!wanted(schedule)) continue;
    ++added;
    Config config = DrawArguments(compiled, schedule, random);
    config.protocol = Protocol::kGenerated;
    EXPECT_TRUE(batch.Add(program, schedule, config, ranks).ok());
  }
  return added;
}

bool Reorders(const Schedule& s) { return absl::StrContains(TraceText(s.trace()), "reorder"); }
bool IsAny(const Schedule&) { return true; }

/// All elements of a result, on rank 0.
std::vector<double> AllOf(const Graph& program, const std::string& result, int ranks,
                          const ElementSource& source) {
  const Interpreter interpreter = Interpreter::Create(program, ranks).value();
  std::vector<int64_t> indices(NumElements(interpreter.type(result).shape));
  std::iota(indices.begin(), indices.end(), 0);
  std::vector<double> elements;
  const Expected expected = interpreter.Evaluate(result, 0, indices, source).value();
  for (const Number& value : expected.value) elements.push_back(value.real());
  return elements;
}

// "Reordered kernels read the wrong slice on ranks above 0."
TEST(Mistakes, ReorderedKernelsWorkOnTheSliceOfTheirRank) {
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(seed);
  VariantBatch batch;
  for (int ranks : {2, 3, 4})
    EXPECT_GT(AddSchedules(Bound("momentum", 1001), ranks, random, Reorders, batch), 0);
  EXPECT_EQ(batch.Run(seed, kSteps), "");
}

// "LAMB norms stayed 0."
TEST(Mistakes, LambScalesByNormsThatAreNotZero) {
  constexpr int64_t kN = 777;
  const WorkloadOptions o;
  const Graph program = Bound("lamb", kN);
  const auto data = [](const std::string& name, int rank, int64_t i) -> double {
    if (name == "step") return 1;
    if (name == "lr") return 0.25;
    if (name == "v") return 0.5;
    return name == "g" ? 0.5 * (rank + 1) : static_cast<double>(i % 5) - 1.5;
  };
  double weights = 0, update = 0;
  std::vector<double> r(kN);
  for (int64_t i = 0; i < kN; ++i) {
    const double g = 0.75, p = data("p", 0, i);  // the mean of 0.5 and 1
    const double m = o.beta1 * data("m", 0, i) + (1 - o.beta1) * g,
                 v = o.beta2 * 0.5 + (1 - o.beta2) * g * g;
    r[i] = m / (1 - o.beta1) / (std::sqrt(v / (1 - o.beta2)) + o.eps) + o.weight_decay * p;
    weights += p * p;
    update += r[i] * r[i];
  }
  const std::vector<double> p = AllOf(program, "p", 2, data);
  for (int64_t i = 0; i < kN; ++i) {
    ASSERT_NEAR(p[i], data("p", 0, i) - 0.25 * std::sqrt(weights) / std::sqrt(update) * r[i], 1e-12)
        << i;
  }
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(seed);
  VariantBatch batch;
  const auto some = [&](const Schedule&) {
    return random() % (TheMachine().simulated ? 48 : OneInFlag(24)) == 0;
  };
  for (int ranks : {1, 2, 3}) AddSchedules(program, ranks, random, some, batch);
  EXPECT_EQ(batch.Run(seed, kSteps), "");
}

// "The fused Adam used b2 for m."
TEST(Mistakes, TheMomentsOfAdamHaveDecaysOfTheirOwn) {
  const WorkloadOptions options{.beta1 = 0.5, .beta2 = 0.25};
  const Graph program = Bound("adam", 65, options);
  const auto data = [](const std::string& name, int, int64_t) {
    return name == "g" ? 2.0 : name == "m" ? 8.0 : 1.0;
  };
  for (double m : AllOf(program, "m", 2, data)) ASSERT_DOUBLE_EQ(m, 0.5 * 8 + 0.5 * 2);
  for (double v : AllOf(program, "v", 2, data)) ASSERT_DOUBLE_EQ(v, 0.25 * 1 + 0.75 * 4);
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(seed);
  VariantBatch batch;
  AddSchedules(program, 2, random, IsAny, batch);
  EXPECT_EQ(batch.Run(seed, kSteps), "");
}

constexpr char kDropouts[] = R"(input x : f32[300, 70] local
input seed : i64[]
state s : f32[300, 70]
ones = 1 + 0 * all_reduce(sum, x)
update(s, dropout(ones, seed, 0.25))
output far = dropout(ones, seed, 0.25, 1)
)";

// "Dropout drew one number for all elements."
TEST(Mistakes, DropoutDrawsForEachElementAtItsRateAndScale) {
  const auto data = [](const std::string& name, int, int64_t) {
    return name == "seed" ? 7.0 : 1.0;
  };
  const std::vector<double> y = AllOf(Parsed(kDropouts), "s", 2, data),
                            far = AllOf(Parsed(kDropouts), "far", 2, data);
  int64_t dropped = 0, changes = 0, alike = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_TRUE(y[i] == 0 || y[i] == 1 / 0.75);
    dropped += y[i] == 0;
    changes += i > 0 && (y[i] == 0) != (y[i - 1] == 0);
    alike += (y[i] == 0) == (far[i] == 0);
  }
  const double n = static_cast<double>(y.size());
  const auto expect_share = [n](int64_t count, double share) {
    EXPECT_NEAR(static_cast<double>(count), share * n, 5 * std::sqrt(n * share * (1 - share)));
  };
  expect_share(dropped, 0.25);
  expect_share(changes, 2 * 0.25 * 0.75);
  expect_share(alike, 0.25 * 0.25 + 0.75 * 0.75);  // of two streams
}

TEST(Mistakes, DropoutHasOneMaskUnderEveryScheduleLayoutAndNumberOfRanks) {
  const auto data = [](const std::string& name, int, int64_t) {
    return name == "seed" ? 7.0 : 1.0;
  };
  const Graph program = Parsed(kDropouts);
  const std::vector<double> mask = AllOf(program, "s", 1, data);
  std::set<std::string> layouts;
  const std::vector<Schedule> schedules = Derive(program).value();
  for (const Schedule& schedule : schedules) {
    if (!schedule.kernels().empty()) continue;
    layouts.insert(Text(As<State>(schedule.graph(), 2)->type.layout));
    for (int ranks : {2, 3, 8})
      EXPECT_EQ(AllOf(schedule.graph(), "s", ranks, data), mask) << Describe(schedule);
  }
  EXPECT_EQ(layouts, (std::set<std::string>{"auto", "sliced(0)", "sliced(1)", "sliced(flat)"}));
  // Kernels: a mask that is another one is out of the reference's bounds.
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(seed);
  VariantBatch batch;
  const auto some = [&](const Schedule&) {
    return random() % (TheMachine().simulated ? 12 : 4) == 0;
  };
  for (int ranks : {1, 2, 3}) AddSchedules(program, ranks, random, some, batch);
  EXPECT_EQ(batch.Run(seed, kSteps), "");
}

// "No bounds checks": canaries stand around every buffer, and what is not written is NaN.
TEST(Mistakes, OddSizesStayWithinTheirBounds) {
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(seed);
  VariantBatch batch;
  for (int64_t n : {1, 63, 65, 1023})
    AddSchedules(Bound("sgd", n), n % 2 == 1 ? 3 : 2, random, IsAny, batch);
  EXPECT_EQ(batch.Run(seed, kSteps), "");
}

// "A reference check that compared zero elements."
TEST(Mistakes, TheCheckComparesEveryElement) {
  const uint64_t seed = FreshSeed();
  std::mt19937_64 random(seed);
  constexpr int64_t kN = 501;
  VariantBatch batch;
  AddSchedules(Bound("momentum", kN), 2, random, Reorders, batch);
  EXPECT_EQ(batch.Run(seed, kSteps), "");
  EXPECT_GT(batch.tally().variants, 0);
  EXPECT_EQ(batch.tally().elements, batch.tally().variants * kSteps * 2 * kN);  // of p and m
  EXPECT_EQ(batch.tally().undetermined, 0);
}

TEST(Mistakes, TheCheckSeesAnotherProgram) {
  const uint64_t seed = FreshSeed();
  VariantBatch batch;
  const Schedule other = InitialSchedule(Bound("momentum", 501, {.momentum = 0.901})).value();
  Config config;
  config.protocol = Protocol::kGenerated;
  ASSERT_TRUE(batch.Add(Bound("momentum", 501), other, config, 2).ok());
  EXPECT_THAT(batch.Run(seed, kSteps), HasSubstr("on rank 0: want "));
}

}  // namespace
}  // namespace coconet
