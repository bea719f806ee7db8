// A training step that the library differentiates, tunes and runs, against PyTorch: the loss of
// each step, and all weights after the last one (torch/gpt_step.py). COCONET_PYTHON names the
// interpreter that has PyTorch; without one the comparison is skipped.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autotune/session/session.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "coconet/workloads/training_steps.h"
#include "gtest/gtest.h"
#include "tests/commands/command.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

constexpr GptModel kSizes{.layers = 2,
                          .width = 32,
                          .heads = 4,
                          .vocabulary = 61,
                          .sequence = 12,
                          .examples = 2,
                          .micro_batches = 2};
constexpr int kRanks = 2, kSteps = 20;
constexpr double kLearningRate = 1e-2;
/// Adam divides by the gradient's magnitude plus this number. Beside gradients of about 1e-2 it
/// keeps elements with gradients near zero from magnifying how single precision rounds them.
constexpr double kEps = 1e-3;

template <class T>
void Save(const fs::path& path, const std::vector<T>& numbers) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size() * sizeof(T)));
}

using Weights = std::map<std::string, std::vector<float>>;

/// Normal with a standard deviation of 0.2; scales of norms are about 1.
Weights DrawWeights(const Graph& program, const fs::path& folder, uint64_t seed,
                    std::ofstream& manifest) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 0.2F);
  Weights weights;
  const std::vector<std::string> names = WeightsOf(program);
  for (const Node& node : program.nodes) {
    const auto* state = std::get_if<State>(&node.op);
    if (state == nullptr || !absl::c_linear_search(names, state->name)) continue;
    std::vector<float>& numbers = weights[state->name];
    numbers.resize(NumElements(state->type.shape));
    const float mean = absl::EndsWith(state->name, ".scale") ? 1 : 0;
    for (float& number : numbers) number = mean + normal(random);
    Save(folder / absl::StrCat(state->name, ".before"), numbers);
    manifest << "weight " << state->name;
    for (const Dim& dim : state->type.shape) manifest << " " << dim.size;
    manifest << "\n";
  }
  return weights;
}

/// Tokens of one rank in one step, and the ones that follow them: a cycle with some mistakes.
std::vector<int32_t> DrawTokens(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> tokens(kSizes.tokens() + 1);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool jumps = i == 0 || random() % 8 == 0;
    tokens[i] = static_cast<int32_t>((jumps ? random() : 7 * tokens[i - 1] + 3) %
                                     static_cast<uint64_t>(kSizes.vocabulary));
  }
  return tokens;
}

absl::Status Train(Session& session, const Graph& program, Weights weights, const fs::path& folder,
                   uint64_t seed) {
  ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program));
  std::vector<int32_t> tokens(kSizes.tokens()), targets(kSizes.tokens());
  float loss = 0;
  std::vector<Binding> bindings = {{"tokens", absl::MakeSpan(tokens)},
                                   {"targets", absl::MakeSpan(targets)},
                                   {"loss", absl::MakeSpan(&loss, 1)}};
  ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind(bindings));
  for (const auto& [name, numbers] : weights) {
    RETURN_IF_ERROR(bound.Write(name, numbers.data(), static_cast<int64_t>(numbers.size())));
  }
  ASSIGN_OR_RETURN(const ScalarRef lr, bound.Scalar("lr"));
  ASSIGN_OR_RETURN(const ScalarRef number, bound.Scalar("step"));
  RETURN_IF_ERROR(bound.Set(lr, kLearningRate));
  std::vector<float> losses;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<int32_t> drawn =
        DrawTokens(seed + static_cast<uint64_t>(step * kRanks + session.rank()));
    tokens.assign(drawn.begin(), drawn.end() - 1);
    targets.assign(drawn.begin() + 1, drawn.end());
    const std::string which = absl::StrCat(step, ".", session.rank());
    Save(folder / absl::StrCat("tokens.", which), tokens);
    Save(folder / absl::StrCat("targets.", which), targets);
    RETURN_IF_ERROR(bound.Set(number, step + 1));
    RETURN_IF_ERROR(bound.Run());
    losses.push_back(loss);
  }
  for (auto& [name, numbers] : weights) {
    RETURN_IF_ERROR(bound.Read(name, numbers.data(), static_cast<int64_t>(numbers.size())));
    if (session.rank() == 0) Save(folder / absl::StrCat(name, ".after"), numbers);
  }
  if (session.rank() == 0) Save(folder / "losses", losses);
  return absl::OkStatus();
}

TEST(Torch, TrainsAsTheLibraryDoes) {
  const uint64_t seed = GetEnv().seed.value_or(std::random_device()());
  const char* const named = std::getenv("COCONET_PYTHON");
  const std::string python = named == nullptr ? "/usr/bin/python3" : named;
  if (RunCommand({python, "-c", "import torch"}).code != 0)
    GTEST_SKIP() << python << " has no PyTorch; COCONET_PYTHON may name another";
  const fs::path folder = fs::path(::testing::TempDir()) / absl::StrCat("torch_", getpid());
  fs::create_directories(folder);
  const WorkloadOptions options = {.eps = kEps};
  const absl::StatusOr<Graph> program = GptStep(kSizes, options);
  ASSERT_TRUE(program.ok()) << program.status();
  std::ofstream manifest(folder / "manifest.txt");
  const std::pair<const char*, double> sizes[] = {{"layers", kSizes.layers},
                                                  {"heads", kSizes.heads},
                                                  {"sequence", kSizes.sequence},
                                                  {"ranks", kRanks},
                                                  {"steps", kSteps},
                                                  {"lr", kLearningRate},
                                                  {"beta1", options.beta1},
                                                  {"beta2", options.beta2},
                                                  {"eps", options.eps},
                                                  {"weight_decay", options.weight_decay}};
  for (const auto& [name, size] : sizes) manifest << "size " << name << " " << size << "\n";
  const Weights weights = DrawWeights(*program, folder, seed, manifest);
  manifest.close();
  SessionOptions session_options;
  session_options.cache_file = ":none:";
  session_options.budget_s = 20;
  const absl::Status trained = RunRanks(
      kRanks, [&](Session& session) { return Train(session, *program, weights, folder, seed); },
      session_options);
  ASSERT_TRUE(trained.ok()) << trained;
  const Ended compared = RunCommand({python, "tests/torch/gpt_step.py", folder.string()});
  EXPECT_EQ(compared.code, 0) << compared.out << compared.err << "COCONET_SEED=" << seed;
  std::cout << compared.out;
  fs::remove_all(folder);
}

}  // namespace
}  // namespace coconet
