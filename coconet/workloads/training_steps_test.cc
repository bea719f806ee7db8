#include "coconet/workloads/training_steps.h"

#include <cmath>
#include <map>
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
          const double x = drawn(name, rank, at).real();
          if (name == "tokens" || name == "targets") return std::floor(5.5 + 6 * x);
          return x + (name == moved.name && at == moved.index ? moved.more : 0);
        });
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->value[0].real() : 0;
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

constexpr LocalSgdModel kRound{
    .layers = 2, .inputs = 3, .width = 4, .outputs = 2, .examples = 2, .local_steps = 3};

/// A rank's own part of a round in plain loops: weights and momenta after its local steps.
struct LocalRound {
  std::vector<std::vector<double>> weights, momenta;  // l0.weight, l0.bias, l1.weight, l1.bias
  double loss = 0;
};
LocalRound StepAlone(const LocalSgdModel& s, LocalRound at, const std::vector<double>& x,
                     const std::vector<double>& t, double lr, double momentum) {
  const auto gelu = [](double a) { return a / 2 * (1 + std::erf(a / std::sqrt(2.0))); };
  const auto loss_of = [&](const std::vector<std::vector<double>>& w, int64_t step) {
    double sum = 0;
    for (int64_t e = step * s.examples; e < (step + 1) * s.examples; ++e) {
      std::vector<double> h = w[1];
      for (int64_t j = 0; j < s.width; ++j) {
        for (int64_t i = 0; i < s.inputs; ++i) h[j] += x[e * s.inputs + i] * w[0][i * s.width + j];
        h[j] = gelu(h[j]);
      }
      for (int64_t k = 0; k < s.outputs; ++k) {
        double y = w[3][k] - t[e * s.outputs + k];
        for (int64_t j = 0; j < s.width; ++j) y += h[j] * w[2][j * s.outputs + k];
        sum += y * y;
      }
    }
    return sum / static_cast<double>(s.examples * s.outputs);
  };
  for (int64_t step = 0; step < s.local_steps; ++step) {
    at.loss += loss_of(at.weights, step) / static_cast<double>(s.local_steps);
    std::vector<std::vector<double>> gradients = at.weights;
    for (size_t w = 0; w < at.weights.size(); ++w) {
      for (size_t i = 0; i < at.weights[w].size(); ++i) {
        constexpr double kMove = 1e-5;
        std::vector<std::vector<double>> more = at.weights, less = at.weights;
        more[w][i] += kMove, less[w][i] -= kMove;
        gradients[w][i] = (loss_of(more, step) - loss_of(less, step)) / (2 * kMove);
      }
    }
    for (size_t w = 0; w < at.weights.size(); ++w) {
      for (size_t i = 0; i < at.weights[w].size(); ++i) {
        at.momenta[w][i] = momentum * at.momenta[w][i] + gradients[w][i];
        at.weights[w][i] -= lr * at.momenta[w][i];
      }
    }
  }
  return at;
}

TEST(LocalSgd, IsRanksOwnStepsAndAPullToTheAnchor) {
  constexpr int kRanks = 3;
  constexpr double kLr = 0.125;
  const uint64_t seed = GetEnv().seed.value_or(std::random_device()());
  const WorkloadOptions options;
  const absl::StatusOr<Graph> program = LocalSgd(kRound, options);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(*Parse(Print(*program)), *program);
  const std::vector<std::string> names = WeightsOf(*program);
  ASSERT_EQ(names, (std::vector<std::string>{"l0.weight", "l0.bias", "l1.weight", "l1.bias"}));
  EXPECT_EQ(CountOf<AllReduce>(*program), static_cast<int>(names.size()));
  const absl::StatusOr<Interpreter> interpreter = Interpreter::Create(*program, kRanks);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  const ElementSource drawn = RandomElements(seed);
  const ElementSource source = [&](const std::string& name, int rank, int64_t at) -> double {
    const bool is_shared = absl::EndsWith(name, ".z") || absl::EndsWith(name, ".v");
    return name == "lr" ? kLr : drawn(name, is_shared ? 0 : rank, at).real();
  };
  std::map<std::string, int64_t> sizes;
  for (const Node& node : program->nodes) {
    if (const auto* input = std::get_if<Input>(&node.op))
      sizes[input->name] = NumElements(input->type.shape);
    if (const auto* state = std::get_if<State>(&node.op))
      sizes[state->name] = NumElements(state->type.shape);
  }
  const auto all = [&](const std::string& name, int rank) {
    std::vector<double> elements;
    for (int64_t i = 0; i < sizes.at(name); ++i) elements.push_back(source(name, rank, i).real());
    return elements;
  };
  for (int rank = 0; rank < kRanks; ++rank) {
    LocalRound before;
    for (const std::string& name : names) {
      before.weights.push_back(all(name, rank));
      before.momenta.push_back(all(absl::StrCat(name, ".m"), rank));
    }
    const LocalRound want =
        StepAlone(kRound, before, all("x", rank), all("t", rank), kLr, options.momentum);
    const auto expect = [&](const std::string& name, int64_t index, double value) {
      const absl::StatusOr<Expected> have = interpreter->Evaluate(name, rank, {&index, 1}, source);
      ASSERT_TRUE(have.ok()) << have.status();
      EXPECT_NEAR(have->value[0].real(), value, 1e-6 * (1 + std::abs(value)))
          << name << "[" << index << "] of rank " << rank << ", COCONET_SEED=" << seed;
    };
    expect("loss", 0, want.loss);
    for (size_t w = 0; w < names.size(); ++w) {
      for (int64_t i = 0; i < std::ssize(want.weights[w]); ++i) {
        double mean = 0;
        const double z = source(absl::StrCat(names[w], ".z"), 0, i).real();
        for (int r = 0; r < kRanks; ++r) mean += (source(names[w], r, i).real() - z) / kRanks;
        const double v =
            options.anchor_momentum * source(absl::StrCat(names[w], ".v"), 0, i).real() + mean;
        const double x = want.weights[w][i];
        expect(absl::StrCat(names[w], ".v"), i, v);
        expect(absl::StrCat(names[w], ".z"), i, z + v);
        expect(absl::StrCat(names[w], ".m"), i, want.momenta[w][i]);
        expect(names[w], i, x - options.pull * (x - (z + v)));
      }
    }
  }
}

TEST(LocalSgd, HasMasterCopiesInNarrowTypes) {
  const absl::StatusOr<Graph> program = LocalSgd(kRound, {.dtype = DType::kBF16});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(WeightsOf(*program).size(), 4u);
  const std::string text = Print(*program);
  EXPECT_THAT(text, HasSubstr("state l0.bias : bf16[4] local"));
  EXPECT_THAT(text, HasSubstr("state l0.bias.w : f32[4] local"));
  EXPECT_THAT(text, HasSubstr("state l0.bias.z : f32[4] auto"));
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
  EXPECT_THAT(std::string(LocalSgd({.local_steps = 0}).status().message()),
              HasSubstr("local_sgd: want local_steps of at least 1, have 0"));
  EXPECT_THAT(std::string(MlpStep({.examples = -3}).status().message()),
              HasSubstr("want examples of at least 1, have -3"));
}

}  // namespace
}  // namespace coconet
