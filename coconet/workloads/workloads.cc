#include "coconet/workloads/workloads.h"

#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "coconet/language/composed.h"
#include "coconet/language/language.h"
#include "coconet/workloads/adam.h"
#include "coconet/workloads/model_shapes.h"

namespace coconet {
namespace {

/// The storage of an optimizer's weights.
enum class Weights : uint8_t {
  kMaster,      // f32, with a copy in the gradient's type if that is another
  kStochastic,  // bf16 only, rounded stochastically
};

/// What all data-parallel optimizers have: the gradient, and the weights to update.
class Optimizer {
 public:
  Optimizer(absl::string_view name, const WorkloadOptions& options, Weights weights)
      : mixed_(options.dtype != DType::kF32),
        kind_(weights),
        program_(name),
        gradient_(program_.Input("g", options.dtype, {"N"}, Layout::Local())),
        weights_(program_.State("p", weights == Weights::kStochastic ? DType::kBF16 : options.dtype,
                                {"N"}, Layout::Replicated())),
        master_(weights == Weights::kStochastic ? CastTo(DType::kF32, weights_)
                : mixed_                        ? program_.State("w", DType::kF32, {"N"})
                                                : weights_) {}

  Tensor Moment(absl::string_view name) { return program_.State(name, DType::kF32, {"N"}); }
  Tensor LearningRate() { return program_.Scalar("lr"); }
  Tensor StepNumber() { return program_.Scalar("step", DType::kF64); }

  /// A state of the whole program, not of a tensor.
  Tensor SharedState(absl::string_view name) {
    return program_.State(name, DType::kF32, {}, Layout::Replicated());
  }
  Tensor Number(double value) { return program_.Constant(value, DType::kF32); }
  /// A scalar per tensor of a list.
  Tensor ScalarOfTensor(absl::string_view name) { return program_.Each(program_.Scalar(name)); }

  /// The mean over the ranks, in f32. Cast after the reduction, so that the narrow
  /// type is transferred.
  Tensor MeanGradient() {
    const Tensor sum = AllReduce(ReduceKind::kSum, gradient_);
    return (mixed_ ? CastTo(DType::kF32, sum) : sum) * (1 / program_.world(DType::kF32));
  }

  /// The f32 weights.
  Tensor weights() const { return master_; }

  absl::StatusOr<Graph> Finish(Tensor new_weights) {
    if (kind_ == Weights::kStochastic) {
      Update(weights_, RoundStochastic(new_weights, program_.Scalar("seed", DType::kI64)));
      return program_.graph();
    }
    if (mixed_) new_weights = CastTo(weights_.type().dtype, Update(master_, new_weights));
    Update(weights_, new_weights);
    return program_.graph();
  }

 private:
  const bool mixed_;
  const Weights kind_;
  Program program_;
  const Tensor gradient_, weights_, master_;
};

absl::StatusOr<Graph> Sgd(Optimizer& o, const WorkloadOptions&) {
  const Tensor lr = o.LearningRate();
  return o.Finish(o.weights() - lr * o.MeanGradient());
}

absl::StatusOr<Graph> Momentum(Optimizer& o, const WorkloadOptions& options) {
  const Tensor m = o.Moment("m"), lr = o.LearningRate();
  const Tensor m1 = Update(m, options.momentum * m + o.MeanGradient());
  return o.Finish(o.weights() - lr * m1);
}

/// What Adam subtracts from the weights.
struct AdamStep {
  Tensor lr;
  Tensor difference;
  std::optional<Tensor> keep;  // condition of the step; nullopt: always
};

/// The gradient of a step, derived from the mean over the ranks, and the condition of the step
/// (nullopt: always).
struct UsedGradient {
  Tensor g;
  std::optional<Tensor> keep = std::nullopt;
};
using GradientRule = UsedGradient (*)(Optimizer& o, const WorkloadOptions& options, Tensor mean);

UsedGradient AsItIs(Optimizer&, const WorkloadOptions&, Tensor mean) { return {mean}; }

/// `value`; `before` in a step that is skipped.
Tensor Kept(const UsedGradient& used, Tensor value, Tensor before) {
  return used.keep.has_value() ? Select(*used.keep, value, before) : value;
}

/// `scale` multiplies the factor of the first moment: the learning rate, or 1.
AdamStep StepOfAdam(Optimizer& o, const WorkloadOptions& options,
                    std::optional<double> scale = std::nullopt, GradientRule rule = AsItIs) {
  const Tensor m = o.Moment("m"), v = o.Moment("v"), lr = o.LearningRate(), step = o.StepNumber();
  const UsedGradient used = rule(o, options, o.MeanGradient());
  const Tensor g = used.g;
  const Tensor m1 = Update(m, Kept(used, FirstMoment(options, m, g), m));
  const Tensor v1 = Update(v, Kept(used, SecondMoment(options, v, g), v));
  return {lr, AdamDifference(options, scale.has_value() ? Tensor(*scale) : lr, m1, v1, step),
          used.keep};
}

absl::StatusOr<Graph> Adam(Optimizer& o, const WorkloadOptions& options) {
  return o.Finish(o.weights() - StepOfAdam(o, options).difference);
}

absl::StatusOr<Graph> AdamW(Optimizer& o, const WorkloadOptions& options) {
  const AdamStep step = StepOfAdam(o, options);
  const Tensor decay = step.lr * options.weight_decay * o.weights();
  return o.Finish(o.weights() - (step.difference + decay));
}

/// LAMB: the update is scaled by the weights' norm, per tensor (You et al., arXiv 1904.00962).
absl::StatusOr<Graph> Lamb(Optimizer& o, const WorkloadOptions& options) {
  const AdamStep step = StepOfAdam(o, options, 1);
  const Tensor r = step.difference + options.weight_decay * o.weights();
  const Tensor weights = Norm(o.weights()), update = Norm(r);
  const Tensor ratio = Select(weights > 0, Select(update > 0, weights / update, 1), 1);
  return o.Finish(o.weights() - step.lr * ratio * r);
}

/// Scales the gradients down to a norm of at most `max_norm` over all tensors.
UsedGradient Clipped(Optimizer&, const WorkloadOptions& options, Tensor mean) {
  const Tensor norm = Sqrt(Total(Sum(mean * mean)));
  return {mean * Min(options.max_norm / (norm + 1e-6), 1)};
}

absl::StatusOr<Graph> Clip(Optimizer& o, const WorkloadOptions& options) {
  const AdamStep step = StepOfAdam(o, options, std::nullopt, Clipped);
  const Tensor decay = step.lr * options.weight_decay * o.weights();
  return o.Finish(o.weights() - (step.difference + decay));
}

/// AdamW with one weight decay per tensor; 0 for groups without decay.
absl::StatusOr<Graph> Groups(Optimizer& o, const WorkloadOptions& options) {
  const Tensor decay = o.ScalarOfTensor("wd");
  const AdamStep step = StepOfAdam(o, options);
  return o.Finish(o.weights() - (step.difference + step.lr * decay * o.weights()));
}

/// Gradients of a loss that was multiplied by `scale`. A step is skipped if any gradient on any
/// rank is infinite or NaN; their sum over the ranks then is, too. The scale is halved after such a
/// step, and doubled after growth_steps others.
UsedGradient Unscaled(Optimizer& o, const WorkloadOptions& options, Tensor mean) {
  const Tensor scale = o.SharedState("scale"), good = o.SharedState("good");
  const Tensor bad =
      Total(AMax(Select(Abs(mean) < std::numeric_limits<double>::infinity(), o.Number(0), 1)),
            ReduceKind::kMax);
  const Tensor keep = bad < 0.5;
  const Tensor more = good + 1;
  const Tensor grows = more >= options.growth_steps;
  Update(scale, Select(keep, Select(grows, 2 * scale, scale), 0.5 * scale));
  Update(good, Select(keep, Select(grows, o.Number(0), more), 0));
  return {mean / scale, keep};
}

absl::StatusOr<Graph> LossScale(Optimizer& o, const WorkloadOptions& options) {
  const AdamStep step = StepOfAdam(o, options, std::nullopt, Unscaled);
  return o.Finish(Select(*step.keep, o.weights() - step.difference, o.weights()));
}

struct WorkloadRow {
  WorkloadInfo info;
  absl::StatusOr<Graph> (*optimizer)(Optimizer&, const WorkloadOptions&) = nullptr;
  absl::StatusOr<Graph> (*model)(DType) = nullptr;
  Weights weights = Weights::kMaster;
};

const std::vector<WorkloadRow>& Rows() {
  const auto optimizer = [](absl::string_view name, absl::string_view description,
                            absl::string_view varies = "") {
    WorkloadInfo info{name, description, true, {{"default", {{"N", int64_t{1} << 20}}}}, varies};
    for (const std::string& model : ModelNames())
      info.presets.push_back({model, {{"N", *ModelSizes(model)}}});
    return info;
  };
  static const std::vector<WorkloadRow> rows = {
      {optimizer("sgd", "p <- p - lr*G"), Sgd},
      {optimizer("momentum", "SGD with momentum: m <- mu*m + G; p <- p - lr*m"), Momentum},
      {optimizer("adam", "Adam, moments with bias correction"), Adam},
      {optimizer("adamw", "Adam with decoupled weight decay"), AdamW},
      {optimizer("lamb", "LAMB: Adam's step scaled by norm(p) / norm(step)"), Lamb},
      {optimizer("clip", "AdamW with the norm of all tensors' gradients clipped", "adamw"), Clip},
      {optimizer("groups", "AdamW with a weight decay wd per tensor", "adamw"), Groups},
      {optimizer("loss_scale",
                 "Adam of a scaled loss; no tensor changes where any gradient is inf or nan",
                 "adam"),
       LossScale},
      {optimizer("stochastic",
                 "AdamW of bf16 weights without a copy in f32, rounded at random by a seed",
                 "adamw"),
       AdamW, nullptr, Weights::kStochastic},
      {{"attention", "y = dropout(sum over ranks of x.w + b) + r behind attention, K = H", false,
        AttentionSizes(), ""},
       nullptr,
       Epilogue},
      {{"mlp", "y = dropout(sum over ranks of x.w + b) + r behind an MLP, K = 4H", false,
        MlpSizes(), ""},
       nullptr,
       Epilogue},
      {{"sequence", "sequence parallelism: gather, two products, scatter", false, SequenceSizes(),
        ""},
       nullptr,
       SequenceParallel},
      {{"decode", "a layer of a decoder for a few tokens, without attention", false, DecodeSizes(),
        ""},
       nullptr,
       Decode},
      {{"dlrm_embedding", "bags of rows of embedding tables on the ranks that have them, exchanged",
        false, EmbeddingSizes(), ""},
       nullptr,
       Embedding},
      {{"moe", "a layer of a mixture of experts: dispatch by given routing, experts, combine",
        false, MixtureSizes(), ""},
       nullptr,
       MixtureOfExperts},
      {{"pipeline", "a pipeline boundary: dropout(sum over ranks of x + b) + r for the next stage",
        false, PipelineSizes(), ""},
       nullptr,
       PipelineBoundary},
  };
  return rows;
}

}  // namespace

std::vector<WorkloadInfo> Workloads() {
  std::vector<WorkloadInfo> infos;
  for (const WorkloadRow& row : Rows()) infos.push_back(row.info);
  return infos;
}

absl::StatusOr<Graph> MakeWorkload(absl::string_view name, const WorkloadOptions& options) {
  if (options.dtype != DType::kF32 && options.dtype != DType::kF16 &&
      options.dtype != DType::kBF16) {
    return absl::InvalidArgumentError(absl::StrCat(
        "workload ", name, ": want dtype f32, or f16 or bf16 for mixed precision, have ",
        Name(options.dtype)));
  }
  std::vector<std::string> known;
  for (const WorkloadRow& row : Rows()) {
    if (row.info.name == name) {
      absl::StatusOr<Graph> graph = absl::UnknownError("");
      if (row.model != nullptr) {
        graph = row.model(options.dtype);
      } else {
        Optimizer optimizer(name, options, row.weights);
        graph = row.optimizer(optimizer, options);
      }
      RETURN_IF_ERROR(graph.status());
      graph->name = std::string(name);
      return Canonicalize(*graph).graph;
    }
    known.emplace_back(row.info.name);
  }
  return absl::NotFoundError(absl::StrCat("unknown workload '", name, "'", DidYouMean(name, known),
                                          "; workloads are ", absl::StrJoin(known, ", ")));
}

}  // namespace coconet
