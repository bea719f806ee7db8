#include "coconet/workloads/training_steps.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "coconet/language/composed.h"
#include "coconet/language/gradient.h"
#include "coconet/language/language.h"
#include "coconet/workloads/adam.h"

namespace coconet {
namespace {

constexpr double kNormEpsilon = 1e-5;
/// What the names of a weight's master copy, moments and anchor end with.
constexpr char kMaster[] = ".w", kFirst[] = ".m", kSecond[] = ".v", kAnchor[] = ".z";
constexpr const char* kEndings[] = {kMaster, kFirst, kSecond, kAnchor};

/// A model's program and its weights.
class TrainingStep {
 public:
  TrainingStep(absl::string_view name, const WorkloadOptions& options)
      : options_(options),
        program_(name),
        lr_(program_.Scalar("lr")),
        step_(program_.Scalar("step", DType::kF64)) {}

  Program& program() { return program_; }
  DType dtype() const { return options_.dtype; }

  Tensor Weight(const std::string& name, Shape shape) {
    weights_.push_back(
        {name, program_.State(name, dtype(), std::move(shape), Layout::Replicated())});
    return weights_.back().value;
  }

  /// The canonical program; `loss` is Local, the mean of a rank.
  absl::StatusOr<Graph> Finish(Tensor loss) {
    const Tensor mean = AllReduce(ReduceKind::kSum, loss) / program_.world(DType::kF32);
    program_.Output("loss", mean);
    for (const auto& [name, value] : weights_) {
      Tensor g = Grad(mean, value);
      if (g.id() < 0) break;
      const Shape shape = value.type().shape;
      const bool is_narrow = dtype() != DType::kF32;
      const Tensor master =
          is_narrow ? program_.State(absl::StrCat(name, kMaster), DType::kF32, shape) : value;
      if (is_narrow) g = CastTo(DType::kF32, g);
      const Tensor m = program_.State(absl::StrCat(name, kFirst), DType::kF32, shape),
                   v = program_.State(absl::StrCat(name, kSecond), DType::kF32, shape);
      const Tensor m1 = Update(m, FirstMoment(options_, m, g)),
                   v1 = Update(v, SecondMoment(options_, v, g));
      const Tensor decay = lr_ * options_.weight_decay * master;
      const Tensor next = master - (AdamDifference(options_, lr_, m1, v1, step_) + decay);
      Update(value, is_narrow ? CastTo(dtype(), Update(master, next)) : next);
    }
    ASSIGN_OR_RETURN(const Graph graph, program_.graph());
    return Canonicalize(graph).graph;
  }

 private:
  struct Named {
    std::string name;
    Tensor value;
  };
  const WorkloadOptions options_;
  Program program_;
  const Tensor lr_, step_;
  std::vector<Named> weights_;
};

/// A layer norm with a scale and a shift.
struct NormWeights {
  Tensor scale, shift;
  NormWeights(TrainingStep& step, const std::string& name, int64_t width)
      : scale(step.Weight(absl::StrCat(name, ".scale"), {width})),
        shift(step.Weight(absl::StrCat(name, ".shift"), {width})) {}
  Tensor Of(Tensor x) const { return LayerNorm(x, kNormEpsilon) * scale + shift; }
};

struct LinearWeights {
  Tensor weight, bias;
  LinearWeights(TrainingStep& step, const std::string& name, int64_t in, int64_t out)
      : weight(step.Weight(absl::StrCat(name, ".weight"), {in, out})),
        bias(step.Weight(absl::StrCat(name, ".bias"), {out})) {}
  Tensor Of(Tensor x) const { return MatMul(x, weight) + bias; }
};

struct BlockWeights {
  NormWeights before_attention;
  LinearWeights in, out;
  NormWeights before_mlp;
  LinearWeights up, down;
  BlockWeights(TrainingStep& step, const std::string& name, int64_t width)
      : before_attention(step, absl::StrCat(name, ".norm1"), width),
        in(step, absl::StrCat(name, ".qkv"), width, 3 * width),
        out(step, absl::StrCat(name, ".out"), width, width),
        before_mlp(step, absl::StrCat(name, ".norm2"), width),
        up(step, absl::StrCat(name, ".up"), width, 4 * width),
        down(step, absl::StrCat(name, ".down"), 4 * width, width) {}
};

/// A weight of each rank's own in a round of LocalSgd, and the anchor that all ranks share.
class LocalWeight {
 public:
  LocalWeight(Program& program, const WorkloadOptions& options, const std::string& name,
              const Shape& shape)
      : options_(options),
        is_narrow_(options.dtype != DType::kF32),
        value_(program.State(name, options.dtype, shape, Layout::Local())),
        master_(is_narrow_ ? program.State(absl::StrCat(name, kMaster), DType::kF32, shape,
                                           Layout::Local())
                           : value_),
        momentum_(program.State(absl::StrCat(name, kFirst), DType::kF32, shape, Layout::Local())),
        here_(value_),
        here_master_(master_),
        here_momentum_(momentum_),
        anchor_(MovedAnchor(program, name, shape)) {}

  /// The weight as the model reads it, after the steps so far.
  Tensor value() const { return here_; }

  void Step(Tensor gradient, Tensor lr) {
    const Tensor g = is_narrow_ ? CastTo(DType::kF32, gradient) : gradient;
    here_momentum_ = options_.momentum * here_momentum_ + g;
    here_master_ = here_master_ - lr * here_momentum_;
    here_ = Narrowed(here_master_);
  }
  void Finish() {
    Update(momentum_, here_momentum_);
    const Tensor pulled = here_master_ - options_.pull * (here_master_ - anchor_);
    Update(value_, is_narrow_ ? CastTo(options_.dtype, Update(master_, pulled)) : pulled);
  }

 private:
  /// The anchor, moved by the mean of the weights with which the round begins.
  Tensor MovedAnchor(Program& program, const std::string& name, const Shape& shape) const {
    const Tensor anchor = program.State(absl::StrCat(name, kAnchor), DType::kF32, shape),
                 velocity = program.State(absl::StrCat(name, kSecond), DType::kF32, shape);
    const Tensor off = AllReduce(ReduceKind::kSum, Narrowed(master_ - anchor));
    const Tensor mean = (is_narrow_ ? CastTo(DType::kF32, off) : off) / program.world(DType::kF32);
    return Update(anchor, anchor + Update(velocity, options_.anchor_momentum * velocity + mean));
  }
  Tensor Narrowed(Tensor x) const { return is_narrow_ ? CastTo(options_.dtype, x) : x; }

  const WorkloadOptions options_;
  const bool is_narrow_;
  const Tensor value_, master_, momentum_;     // the states
  Tensor here_, here_master_, here_momentum_;  // after the steps so far
  Tensor anchor_;                              // to pull to at the end of the round
};

/// Causal attention of x [examples * sequence, width], without the product behind it.
Tensor Attention(const LinearWeights& in, const GptModel& s, Tensor x) {
  const Tensor qkv = in.Of(x);
  const int64_t each = s.width / s.heads;
  const auto heads = [&](int64_t part) {
    const Tensor of_part = SubTensor(qkv, 1, part * s.width, (part + 1) * s.width);
    return Transpose(Reshape(of_part, {s.examples, s.sequence, s.heads, each}), {0, 2, 1, 3});
  };
  const Tensor scores = MatMul(heads(0), heads(1), /*transpose_a=*/false, /*transpose_b=*/true) *
                        (1 / std::sqrt(static_cast<double>(each)));
  const Tensor is_past = Iota(DType::kI32, scores, 2) >= Iota(DType::kI32, scores, 3);
  const Tensor shares = Softmax(Select(is_past, scores, -std::numeric_limits<double>::infinity()));
  const Tensor sums = Transpose(MatMul(shares, heads(2)), {0, 2, 1, 3});
  return Reshape(sums, {s.examples * s.sequence, s.width});
}

Tensor MeanOf(const std::vector<Tensor>& losses) {
  Tensor sum = losses[0];
  for (size_t i = 1; i < losses.size(); ++i) sum = sum + losses[i];
  return sum * (1.0 / static_cast<double>(losses.size()));
}

/// A member of a model's sizes, by name.
template <class T>
struct NamedSize {
  absl::string_view name;
  int64_t T::* member;
};
constexpr NamedSize<MlpModel> kMlpNames[] = {{"layers", &MlpModel::layers},
                                             {"inputs", &MlpModel::inputs},
                                             {"width", &MlpModel::width},
                                             {"outputs", &MlpModel::outputs},
                                             {"examples", &MlpModel::examples}};
constexpr NamedSize<LocalSgdModel> kLocalSgdNames[] = {
    {"layers", &LocalSgdModel::layers},     {"inputs", &LocalSgdModel::inputs},
    {"width", &LocalSgdModel::width},       {"outputs", &LocalSgdModel::outputs},
    {"examples", &LocalSgdModel::examples}, {"local_steps", &LocalSgdModel::local_steps}};
constexpr NamedSize<GptModel> kGptNames[] = {{"layers", &GptModel::layers},
                                             {"width", &GptModel::width},
                                             {"heads", &GptModel::heads},
                                             {"vocabulary", &GptModel::vocabulary},
                                             {"sequence", &GptModel::sequence},
                                             {"examples", &GptModel::examples},
                                             {"micro_batches", &GptModel::micro_batches}};

template <class T, size_t n>
absl::Status CheckSizes(absl::string_view step, const NamedSize<T> (&names)[n], const T& sizes) {
  for (const NamedSize<T>& name : names) {
    if (sizes.*name.member < 1)
      return absl::InvalidArgumentError(
          absl::StrCat(step, ": want ", name.name, " of at least 1, have ", sizes.*name.member));
  }
  return absl::OkStatus();
}

template <class T, size_t n>
absl::StatusOr<T> SizesFrom(absl::string_view step, const NamedSize<T> (&names)[n],
                            const Sizes& given) {
  T sizes;
  for (const auto& [name, size] : given) {
    std::vector<std::string> known;
    bool found = false;
    for (const NamedSize<T>& named : names) {
      known.emplace_back(named.name);
      if (named.name != name || size.is_list) continue;
      sizes.*named.member = size.sizes[0];
      found = true;
    }
    if (found) continue;
    if (absl::c_linear_search(known, name))
      return absl::InvalidArgumentError(
          absl::StrCat(step, ": want one number for ", name, ", have ", Text(size)));
    return absl::InvalidArgumentError(absl::StrCat(step, ": no size '", name, "'",
                                                   DidYouMean(name, known), "; its sizes are ",
                                                   absl::StrJoin(known, ", ")));
  }
  return sizes;
}

template <class T, size_t n>
SizePreset PresetOf(absl::string_view name, const NamedSize<T> (&names)[n], const T& sizes) {
  SizePreset preset{std::string(name), {}};
  for (const NamedSize<T>& named : names)
    preset.sizes.emplace(std::string(named.name), sizes.*named.member);
  return preset;
}

constexpr GptModel kGpt2{
    .layers = 12, .width = 768, .heads = 12, .vocabulary = 50257, .sequence = 1024, .examples = 1};

}  // namespace

std::vector<std::string> WeightsOf(const Graph& step) {
  std::vector<std::string> names;
  for (const Node& node : step.nodes) {
    const auto* state = std::get_if<State>(&node.op);
    const bool is_weight = state != nullptr && absl::c_none_of(kEndings, [&](const char* ending) {
                             return absl::EndsWith(state->name, ending);
                           });
    if (is_weight) names.push_back(state->name);
  }
  return names;
}

std::vector<TrainingStepInfo> TrainingSteps() {
  return {
      {"mlp_step",
       "a perceptron's training step: forward, backward, AllReduce of gradients, AdamW",
       {PresetOf("small", kMlpNames, MlpModel{}),
        PresetOf(
            "wide", kMlpNames,
            MlpModel{.layers = 4, .inputs = 1024, .width = 1024, .outputs = 64, .examples = 512})}},
      {"gpt_step",
       "GPT-2's training step: forward, backward, AllReduce of gradients, AdamW",
       {PresetOf("small", kGptNames, GptModel{}), PresetOf("gpt2", kGptNames, kGpt2)}},
      {"local_sgd",
       "a round of Overlap Local-SGD: a perceptron's steps on each rank alone, then a pull to the "
       "anchor",
       {PresetOf("small", kLocalSgdNames, LocalSgdModel{}),
        PresetOf("wide", kLocalSgdNames,
                 LocalSgdModel{
                     .layers = 4, .inputs = 1024, .width = 1024, .outputs = 64, .examples = 128})}},
  };
}

absl::StatusOr<Graph> MakeTrainingStep(absl::string_view name, const Sizes& sizes,
                                       const WorkloadOptions& options) {
  if (name == "mlp_step") {
    ASSIGN_OR_RETURN(const MlpModel its, SizesFrom(name, kMlpNames, sizes));
    return MlpStep(its, options);
  }
  if (name == "gpt_step") {
    ASSIGN_OR_RETURN(const GptModel its, SizesFrom(name, kGptNames, sizes));
    return GptStep(its, options);
  }
  if (name == "local_sgd") {
    ASSIGN_OR_RETURN(const LocalSgdModel its, SizesFrom(name, kLocalSgdNames, sizes));
    return LocalSgd(its, options);
  }
  std::vector<std::string> known;
  for (const TrainingStepInfo& step : TrainingSteps()) known.emplace_back(step.name);
  return absl::NotFoundError(absl::StrCat("unknown training step '", name, "'",
                                          DidYouMean(name, known), "; training steps are ",
                                          absl::StrJoin(known, ", ")));
}

absl::StatusOr<Graph> MlpStep(const MlpModel& s, const WorkloadOptions& options) {
  RETURN_IF_ERROR(CheckSizes("mlp_step", kMlpNames, s));
  TrainingStep step("mlp_step", options);
  Program& program = step.program();
  Tensor h = program.Input("x", options.dtype, {s.examples, s.inputs}, Layout::Local());
  const Tensor t = program.Input("t", options.dtype, {s.examples, s.outputs}, Layout::Local());
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    const bool is_last = layer + 1 == s.layers;
    const LinearWeights linear(step, absl::StrCat("l", layer), layer == 0 ? s.inputs : s.width,
                               is_last ? s.outputs : s.width);
    h = is_last ? linear.Of(h) : Gelu(linear.Of(h));
  }
  const Tensor off = CastTo(DType::kF32, h - t);
  return step.Finish(Mean(off * off));
}

absl::StatusOr<Graph> LocalSgd(const LocalSgdModel& s, const WorkloadOptions& options) {
  RETURN_IF_ERROR(CheckSizes("local_sgd", kLocalSgdNames, s));
  Program program("local_sgd");
  const Tensor lr = program.Scalar("lr");
  const int64_t examples = s.local_steps * s.examples;
  const Tensor x = program.Input("x", options.dtype, {examples, s.inputs}, Layout::Local()),
               t = program.Input("t", options.dtype, {examples, s.outputs}, Layout::Local());
  std::vector<LocalWeight> weights;  // by layer a matrix and a bias
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    const int64_t in = layer == 0 ? s.inputs : s.width,
                  out = layer + 1 == s.layers ? s.outputs : s.width;
    weights.emplace_back(program, options, absl::StrCat("l", layer, ".weight"), Shape{in, out});
    weights.emplace_back(program, options, absl::StrCat("l", layer, ".bias"), Shape{out});
  }
  std::vector<Tensor> losses;
  for (int64_t step = 0; step < s.local_steps; ++step) {
    const int64_t begin = step * s.examples, end = begin + s.examples;
    std::vector<Tensor> values;
    for (const LocalWeight& weight : weights) values.push_back(weight.value());
    Tensor h = SubTensor(x, 0, begin, end);
    for (size_t i = 0; i < values.size(); i += 2) {
      const Tensor linear = MatMul(h, values[i]) + values[i + 1];
      h = i + 2 == values.size() ? linear : Gelu(linear);
    }
    const Tensor off = CastTo(DType::kF32, h - SubTensor(t, 0, begin, end));
    losses.push_back(Mean(off * off));
    const std::vector<Tensor> gradients = Grad(losses.back(), values);
    for (size_t i = 0; i < gradients.size(); ++i) weights[i].Step(gradients[i], lr);
  }
  for (LocalWeight& weight : weights) weight.Finish();
  program.Output("loss", MeanOf(losses));
  ASSIGN_OR_RETURN(const Graph graph, program.graph());
  return Canonicalize(graph).graph;
}

absl::StatusOr<Graph> GptStep(const GptModel& s, const WorkloadOptions& options) {
  RETURN_IF_ERROR(CheckSizes("gpt_step", kGptNames, s));
  if (s.width % s.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("gpt_step: want heads that divide the width ", s.width, ", have ", s.heads));
  }
  TrainingStep step("gpt_step", options);
  Program& program = step.program();
  const Tensor tokens = program.Input("tokens", DType::kI32, {s.tokens()}, Layout::Local()),
               targets = program.Input("targets", DType::kI32, {s.tokens()}, Layout::Local());
  const Tensor embeddings = step.Weight("embeddings", {s.vocabulary, s.width}),
               positions = step.Weight("positions", {s.sequence, s.width});
  std::vector<BlockWeights> blocks;
  for (int64_t layer = 0; layer < s.layers; ++layer)
    blocks.emplace_back(step, absl::StrCat("h", layer), s.width);
  const NormWeights last(step, "norm", s.width);
  std::vector<Tensor> losses;
  const int64_t batch = s.examples * s.sequence;
  for (int64_t i = 0; i < s.micro_batches; ++i) {
    const Tensor here = SubTensor(tokens, 0, i * batch, (i + 1) * batch),
                 wanted = SubTensor(targets, 0, i * batch, (i + 1) * batch);
    const Tensor rows = Reshape(Gather(embeddings, here), {s.examples, s.sequence, s.width});
    Tensor x = Reshape(rows + positions, {batch, s.width});
    for (const BlockWeights& block : blocks) {
      x = x + block.out.Of(Attention(block.in, s, block.before_attention.Of(x)));
      x = x + block.down.Of(Gelu(block.up.Of(block.before_mlp.Of(x))));
    }
    const Tensor logits = MatMul(last.Of(x), embeddings, /*transpose_a=*/false,
                                 /*transpose_b=*/true);
    losses.push_back(Mean(CrossEntropy(logits, wanted)));
  }
  return step.Finish(MeanOf(losses));
}

}  // namespace coconet
