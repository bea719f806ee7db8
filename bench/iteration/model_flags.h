#pragma once

#include <string>
#include <vector>

#include "coconet/workloads/training_steps.h"

namespace coconet::bench {

/// The model that --layers, --width, --vocabulary, --sequence and --examples describe, with heads
/// of 64. A program has these flags where it links this.
GptModel ModelOfFlags();
}  // namespace coconet::bench
