#ifndef COCONET_WORKLOADS_WORKLOADS_H_
#define COCONET_WORKLOADS_WORKLOADS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// Data-parallel optimizers are over one flat parameter vector of N elements, or, where N is bound
/// to a list, over as many. Names of tensors: input `g` (Local gradient), state `p` (Replicated
/// weights as the model reads them), states `m`, `v` (Auto), scalars `lr` (f32) and `step` (f64, 1
/// at the first step); each where the formula has it.
struct WorkloadOptions {
  /// kF32: everything f32. kF16, kBF16: mixed precision, `g` and `p` are of this type and an f32
  /// master copy `w` (Auto) is updated; `p` is w rounded.
  DType dtype = DType::kF32;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01, momentum = 0.9;
  double max_norm = 1;         // clip: of the gradients of all tensors
  double growth_steps = 2000;  // loss_scale: good steps after which the scale doubles
};

/// Sizes that were published, or that are handy.
struct SizePreset {
  std::string name;
  Sizes sizes;  // of every symbol of the program
};

struct WorkloadInfo {
  absl::string_view name;         // as `sweep` takes it
  absl::string_view description;  // one line
  bool optimizer = true;  // over one vector of N elements; else what surrounds a layer's collective
  std::vector<SizePreset> presets;  // the first is the default
  absl::string_view varies =
      "";  // another workload, with a few operations less and nearly the same schedules; "": none
};

/// Optimizers: sgd, momentum, adam, adamw, lamb, clip, groups, loss_scale, stochastic. Of model and
/// pipeline parallelism: attention, mlp, sequence, pipeline. The maths is in docs/language.md; bias
/// correction is in f64.
std::vector<WorkloadInfo> Workloads();

/// The program, canonical, of unbound sizes. Those of models are all of the dtype. NotFound names
/// the known workloads; InvalidArgument for a dtype that is not f32, f16 or bf16.
absl::StatusOr<Graph> MakeWorkload(absl::string_view name, const WorkloadOptions& options = {});

}  // namespace coconet

#endif  // COCONET_WORKLOADS_WORKLOADS_H_
