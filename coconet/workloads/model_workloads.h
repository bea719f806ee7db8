#ifndef COCONET_WORKLOADS_MODEL_WORKLOADS_H_
#define COCONET_WORKLOADS_MODEL_WORKLOADS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "coconet/workloads/workloads.h"

namespace coconet {

// The workloads of model and pipeline parallelism (CoCoNet, ASPLOS'22, section 6; Megatron-LM). All
// tensors have one dtype.

inline constexpr double kEpilogueDropout = 0.1;

/// x[B, S, K] and w[K, H] sliced over K: y = dropout(all_reduce(x.w) + b, 0.1) + r.
absl::StatusOr<Graph> Epilogue(DType dtype);
/// x[B, S, H] sliced over S: y = x + reduce_scatter(gelu(all_gather(rms_norm(x)).v).w), v and w
/// sliced over K.
absl::StatusOr<Graph> SequenceParallel(DType dtype);
/// x[B, S, H] local: y = send(dropout(all_reduce(x) + b, 0.1) + r, next).
absl::StatusOr<Graph> PipelineBoundary(DType dtype);

std::vector<SizePreset> AttentionSizes();
std::vector<SizePreset> MlpSizes();
std::vector<SizePreset> SequenceSizes();
std::vector<SizePreset> PipelineSizes();

}  // namespace coconet

#endif  // COCONET_WORKLOADS_MODEL_WORKLOADS_H_
