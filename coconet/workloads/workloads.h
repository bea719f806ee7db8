#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// Data-parallel optimizers work on one flat parameter vector of N elements, or on a list of
/// vectors if N is bound to a list. Their tensors, as far as the formula has them: input `g` (Local
/// gradient), state `p` (Replicated weights as the model reads them), states `m` and `v` (Auto),
/// scalars `lr` (f32) and `step` (f64, 1 in the first step).
struct WorkloadOptions {
  /// kF32: everything is f32. kF16, kBF16: mixed precision; `g` and `p` have this type, an f32
  /// master copy `w` (Auto) is updated, and `p` is w rounded.
  DType dtype = DType::kF32;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01, momentum = 0.9;
  double max_norm = 1;         // clip: limit of the norm over all tensors' gradients
  double growth_steps = 2000;  // loss_scale: finite steps after which the scale doubles
  // local_sgd: how far a round pulls local weights to the anchor, 1 being all the way, and the
  // anchor's momentum
  double pull = 0.6, anchor_momentum = 0.7;
};

/// Named sizes, from publications or for quick runs.
struct SizePreset {
  std::string name;
  Sizes sizes;  // one per symbol of the program
};

struct WorkloadInfo {
  absl::string_view name;         // as `sweep` takes it
  absl::string_view description;  // one line
  bool optimizer =
      true;  // over one vector of N elements; else the code around a layer's collective
  std::vector<SizePreset> presets;  // the first is the default
  /// A workload with a few operations fewer and nearly the same schedules; "": none.
  absl::string_view varies = "";
};

/// Optimizers: sgd, momentum, adam, adamw, lamb, clip, groups, loss_scale, stochastic. Model and
/// pipeline parallelism: attention, mlp, sequence, decode, dlrm_embedding, pipeline. Formulas are
/// in docs/language.md; bias correction is in f64.
std::vector<WorkloadInfo> Workloads();

/// The canonical program, with unbound sizes. NotFound that names the known workloads;
/// InvalidArgument for a dtype other than f32, f16 or bf16.
absl::StatusOr<Graph> MakeWorkload(absl::string_view name, const WorkloadOptions& options = {});

}  // namespace coconet
