#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/workloads/workloads.h"

namespace coconet {

/// The number of elements of each parameter tensor of a published model, in the order in which the
/// model declares them; nullopt for an unknown name.
///   bert-large: 396 tensors, 335,707,968 elements (Devlin et al., arXiv 1810.04805)
///   gpt2:       148 tensors, 124,439,808 elements (Radford et al., 2019: the smallest of the four)
std::optional<std::vector<int64_t>> ModelSizes(absl::string_view name);

/// The names that ModelSizes knows.
std::vector<std::string> ModelNames();

// The workloads of model and pipeline parallelism (CoCoNet, ASPLOS'22, section 6; Megatron-LM). All
// tensors have one dtype.

inline constexpr double kEpilogueDropout = 0.1;

/// x[B, S, K] and w[K, H] sliced over K: y = dropout(all_reduce(x.w) + b, 0.1) + r.
absl::StatusOr<Graph> Epilogue(DType dtype);
/// x[B, S, H] sliced over S: y = x + reduce_scatter(gelu(all_gather(rms_norm(x)).v).w), v and w
/// sliced over K.
absl::StatusOr<Graph> SequenceParallel(DType dtype);
/// A layer of a decoder for T tokens, with weights as [columns, rows] and no attention:
///   x = all_reduce(a . o) + r                         a[T, K], o[H, K] sliced over K
///   y = x + all_reduce((silu(n . gate) * (n . up)) . down)    n = rms_norm(x) * g
/// with gate[F, H], up[F, H] and down[H, F] sliced over F (Llama 2, arXiv 2307.09288).
absl::StatusOr<Graph> Decode(DType dtype);
/// Embedding tables [R, D], cut over columns, with L look-ups per bag: the sums of the bags of each
/// of B samples; each rank ends with the sums of all tables for its samples.
absl::StatusOr<Graph> Embedding(DType dtype);
/// A layer of E experts [F, H] sliced over E, for T tokens [T, H] of each rank, which `token`
/// [E, G, C] and `count` [E, G], both sliced over G, route: of group g of places, the first
/// count[e, g] of C are in use, and expert e takes row token[e, g, c] of the rank's tokens there.
///   n = all_to_all(rows, 0)    rows: these rows [E, G, C, H], zeros in places not in use
///   z = all_to_all((silu(n . gate) * (n . up)) . down, 1)
///   y = for each token the sum of its places' rows of z, times weight [E, G, C]
absl::StatusOr<Graph> MixtureOfExperts(DType dtype);
/// x[B, S, H] local: y = send(dropout(all_reduce(x) + b, 0.1) + r, next).
absl::StatusOr<Graph> PipelineBoundary(DType dtype);

std::vector<SizePreset> AttentionSizes();
std::vector<SizePreset> MlpSizes();
std::vector<SizePreset> SequenceSizes();
/// "small"; the layers of Llama 2 with H = 4096 and 8192, for 1, 4, 16 and 64 tokens.
std::vector<SizePreset> DecodeSizes();
/// "small"; "dlrm-v2", with the tables of DLRM v2, of 100,000 rows each; "micro", with 8 alike.
std::vector<SizePreset> EmbeddingSizes();
/// "small"; "mixtral", with the layers of Mixtral 8x7B (arXiv 2401.04088), "deepseek", with those
/// of DeepSeekMoE 16B (arXiv 2401.06066), both for 512 tokens of each rank of up to 8.
std::vector<SizePreset> MixtureSizes();
std::vector<SizePreset> PipelineSizes();

}  // namespace coconet
