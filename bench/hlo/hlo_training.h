#pragma once

#include <string>

#include "absl/status/status.h"
#include "bench/harness/row.h"

namespace coconet::bench {

/// A GPT's training step as JAX writes it, on `ranks` ranks: trained for 20 steps beside JAX, then
/// timed, and XLA's own execution timed after it.
absl::Status MeasureTraining(const std::string& python, int ranks, Row& row);

}  // namespace coconet::bench
