#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"
#include "coconet/workloads/workloads.h"

namespace coconet {

/// Whole iterations of data-parallel training: forward, backward, one AllReduce per gradient, and
/// AdamW (options.beta1 ... weight_decay). Weights are states, Replicated; in f16 and bf16 each has
/// a master copy "NAME.w" in f32 (Auto). Moments are "NAME.m" and "NAME.v" (Auto), scalars "lr" and
/// "step". The output "loss" is the mean over all ranks' examples.
struct MlpModel {
  int64_t layers = 2;
  int64_t inputs = 32, width = 64, outputs = 8;
  int64_t examples = 16;  // of a rank
};
/// Perceptron with biases and GELU between its layers; the loss is the mean square of y - t, for
/// inputs "x" [examples, inputs] and "t" [examples, outputs].
absl::StatusOr<Graph> MlpStep(const MlpModel& sizes, const WorkloadOptions& options = {});

struct GptModel {
  int64_t layers = 2;
  int64_t width = 64, heads = 4;
  int64_t vocabulary = 128;
  int64_t sequence = 16;      // tokens of an example
  int64_t examples = 2;       // of a rank and micro-batch
  int64_t micro_batches = 1;  // whose gradients are added before they are reduced
  int64_t tokens() const { return sequence * examples * micro_batches; }  // of a rank
};
/// GPT-2 (Radford et al., 2019) without dropout: learned positions, layers of causal attention and
/// an MLP of four times the width, each behind a layer norm with a scale and a shift; the logits
/// are products with the tokens' embeddings. Inputs "tokens" and "targets", i32 [micro_batches *
/// examples * sequence], Local; a target outside of the vocabulary does not count. The loss is the
/// mean over all positions of all ranks. InvalidArgument if the heads do not divide the width.
absl::StatusOr<Graph> GptStep(const GptModel& sizes, const WorkloadOptions& options = {});

/// A perceptron as of MlpStep, trained by SGD with momentum on each rank alone.
struct LocalSgdModel {
  int64_t layers = 2;
  int64_t inputs = 32, width = 64, outputs = 8;
  int64_t examples = 16;    // of a rank and local step
  int64_t local_steps = 4;  // of a round
};
/// A round of Overlap Local-SGD with momentum (J. Wang et al., ICASSP 2020): `local_steps` steps of
/// each rank's own weights, states "NAME" (Local), then a pull towards the anchor "NAME.z". The
/// anchor is moved by the mean over ranks of the weights with which the round begins, so that the
/// only collective, one AllReduce per weight, can run beside all local steps; it reduces
/// differences from the anchor, in options.dtype. With options.momentum, pull and anchor_momentum:
///   v <- anchor_momentum v + mean(x - z);  z <- z + v
///   m <- momentum m + g;  x <- x - lr m      `local_steps` times
///   x <- x - pull (x - z)
/// "NAME.m" is Local, "NAME.z" and "NAME.v" are Auto, all in f32; in f16 and bf16 so is the master
/// copy "NAME.w" (Local). Inputs "x" and "t" are those of all local steps, one after the other. The
/// output "loss" (Local) is the mean over this rank's examples, each at its own step.
absl::StatusOr<Graph> LocalSgd(const LocalSgdModel& sizes, const WorkloadOptions& options = {});

/// The names of a training step's weights, without their master copies, moments and anchors.
std::vector<std::string> WeightsOf(const Graph& step);

/// Training steps by name, for `sweep`. Their sizes, which are those of the structs above by name,
/// shape the program: it has no symbols.
struct TrainingStepInfo {
  absl::string_view name;
  absl::string_view description;    // one line
  std::vector<SizePreset> presets;  // the first is the default; each has all sizes
};
std::vector<TrainingStepInfo> TrainingSteps();
/// Sizes that are not given are those of the first preset. NotFound for another name;
/// InvalidArgument for sizes that the step does not have, or that do not fit.
absl::StatusOr<Graph> MakeTrainingStep(absl::string_view name, const Sizes& sizes,
                                       const WorkloadOptions& options = {});

}  // namespace coconet
