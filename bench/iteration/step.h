#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "bench/harness/row.h"
#include "bench/harness/tuned_contender.h"
#include "bench/scripts/script.h"
#include "coconet/ir/types.h"

namespace coconet::bench {

/// Sizes of a training step as MakeTrainingStep takes them: with --quick small ones, else those
/// that --layers, --width, --vocabulary, --sequence and --examples give, with heads of 64 and as
/// many inputs as the width. Every program that links step.cc has these flags. `step` is gpt_step
/// or local_sgd.
Sizes SizesOf(absl::string_view step);

/// Tokens of a rank in a step, or examples in a round.
int64_t TokensOf(const Sizes& sizes);
/// Steps of fewer tokens have no bars.
inline constexpr int64_t kTokensOfBar = 512;

/// Sets all sizes, and "tokens".
void SetSizes(const Sizes& sizes, Row& row);

/// The numbers of the step's tensors. Of gpt_step: tokens within the vocabulary, small weights,
/// moments as after a step; of local_sgd: small ones, 0 in momenta.
Numbers NumbersOf(const Sizes& sizes);

/// Measures PyTorch's gpt_step for about `seconds`, by bench/torch/torch_step.py; `script` has the
/// interpreter ("": none) and how the ranks start and meet. Sets "torch" to PyTorch's version, or
/// to "absent: " and why; "torch_form" to the form of attention that is faster; the times "torch",
/// of the step in this form, and "torch_products", of its matrix products alone; and their ratio.
absl::Status SetTorch(Script script, const Sizes& sizes, int ranks, double seconds, Row& row);

}  // namespace coconet::bench
