#pragma once

#include "bench/tuned_contender.h"
#include "coconet/workloads/training_steps.h"

namespace coconet::bench {

/// Of a GptStep: tokens within the vocabulary, small weights, moments as after a step.
Numbers NumbersOf(const GptModel& model);

}  // namespace coconet::bench
