#pragma once

#include "bench/harness/tuned_contender.h"
#include "coconet/workloads/training_steps.h"

namespace coconet::bench {

/// Of a GptStep: tokens within the vocabulary, small weights, moments as after a step.
Numbers NumbersOf(const GptModel& model);

/// Of a LocalSgd: small numbers; momenta are 0.
double NumberOfLocalSgd(absl::string_view tensor, int64_t index, int rank);

}  // namespace coconet::bench
