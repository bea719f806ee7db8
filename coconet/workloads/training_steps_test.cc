#include "coconet/workloads/training_steps.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/env.h"
#include "coconet/language/text.h"
#include "coconet/reference/interpreter.h"
#include "coconet/testing/random_elements.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

constexpr GptModel kSmall{.layers = 2,
                          .width = 8,
                          .heads = 2,
                          .vocabulary = 11,
                          .sequence = 3,
                          .examples = 2,
                          .micro_batches = 2};

template <class T>
int CountOf(const Graph& g) {
  int count = 0;
  for (const Node& node : g.nodes) count += std::holds_alternative<T>(node.op);
  return count;
}

/// The first moment after a step from zero is the gradient, but for a factor.
void CompareMoments(const Graph& program, int ranks, uint64_t seed) {
  const absl::StatusOr<Interpreter> interpreter = Interpreter::Create(program, ranks);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  const ElementSource drawn = RandomElements(seed);
  struct Moved {
    std::string name;
    int64_t index = -1;
    double more = 0;
  };
  const auto evaluate = [&](const std::string& result, int64_t index, const Moved& moved) {
    const absl::StatusOr<Expected> found = interpreter->Evaluate(
        result, 0, {&index, 1}, [&](const std::string& name, int rank, int64_t at) -> double {
          if (absl::EndsWith(name, ".m") || absl::EndsWith(name, ".v")) return 0;
          if (name == "step") return 1;
          const double x = drawn(name, rank, at);
          if (name == "tokens" || name == "targets") return std::floor(5.5 + 6 * x);
          return x + (name == moved.name && at == moved.index ? moved.more : 0);
        });
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->value[0] : 0;
  };
  std::mt19937_64 random(seed);
  int moving = 0, all = 0;
  for (const std::string& name : WeightsOf(program)) {
    for (int i = 0; i < 3; ++i, ++all) {
      const auto index =
          static_cast<int64_t>(random() % NumElements(interpreter->type(name).shape));
      const double have = evaluate(absl::StrCat(name, ".m"), index, {}) / 0.1;
      constexpr double kStep = 1e-4;
      const double want =
          (evaluate("loss", 0, {name, index, kStep}) - evaluate("loss", 0, {name, index, -kStep})) /
          (2 * kStep);
      EXPECT_NEAR(have, want, 1e-6 * (1 + std::abs(want)))
          << name << "[" << index << "], " << ranks << " ranks, COCONET_SEED=" << seed;
      moving += std::abs(have) > 1e-6;
    }
  }
  EXPECT_GT(moving, all / 2);
}

TEST(TrainingSteps, HaveTheGradientsOfTheirLosses) {
  const uint64_t seed = GetEnv().seed.value_or(std::random_device()());
  const absl::StatusOr<Graph> mlp =
      MlpStep({.layers = 3, .inputs = 4, .width = 5, .outputs = 2, .examples = 3});
  ASSERT_TRUE(mlp.ok()) << mlp.status();
  const absl::StatusOr<Graph> gpt = GptStep(kSmall);
  ASSERT_TRUE(gpt.ok()) << gpt.status();
  for (int ranks : {1, 2}) {
    CompareMoments(*mlp, ranks, seed);
    CompareMoments(*gpt, ranks, seed);
  }
}

TEST(TrainingSteps, ReduceEachGradientOnce) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const absl::StatusOr<Graph> gpt = GptStep(kSmall, {.dtype = dtype});
    ASSERT_TRUE(gpt.ok()) << gpt.status();
    const size_t weights = WeightsOf(*gpt).size();
    EXPECT_EQ(weights, 2 + 2 * 12 + 2u);
    EXPECT_EQ(CountOf<AllReduce>(*gpt), static_cast<int>(weights) + 1);
    EXPECT_EQ(*Parse(Print(*gpt)), *gpt);
  }
}

TEST(TrainingSteps, GrowWithTheirLayers) {
  const auto size = [](int64_t layers) { return GptStep({.layers = layers})->size(); };
  const int64_t two = size(2), four = size(4), twelve = size(12);
  EXPECT_EQ(twelve - four, 4 * (four - two));
}

TEST(TrainingSteps, RefuseSizesThatDoNotDivide) {
  EXPECT_THAT(std::string(GptStep({.width = 10, .heads = 4}).status().message()),
              HasSubstr("want heads that divide the width 10, have 4"));
  EXPECT_THAT(std::string(GptStep({.layers = 0}).status().message()),
              HasSubstr("want layers of at least 1, have 0"));
  EXPECT_THAT(std::string(MlpStep({.examples = -3}).status().message()),
              HasSubstr("want examples of at least 1, have -3"));
}

}  // namespace
}  // namespace coconet
