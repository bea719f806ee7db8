#pragma once

#include "bench/harness/tuned_contender.h"
#include "coconet/workloads/training_steps.h"

namespace coconet::bench {

/// The numbers of a GptStep: tokens within the vocabulary, small weights, moments as after a step.
Numbers NumbersOf(const GptModel& model);

/// The number of an element of a LocalSgd: small; 0 in momenta.
double NumberOfLocalSgd(absl::string_view tensor, int64_t index, int rank);

/// A model for --quick.
GptModel QuickModel();

}  // namespace coconet::bench
