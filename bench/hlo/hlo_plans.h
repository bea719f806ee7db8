#pragma once

#include <string>

#include "absl/status/status.h"
#include "bench/harness/row.h"

namespace coconet::bench {

/// Imports a module in HLO and plans it for as many H100 as it was written for, with links of 100
/// Gbit/s: seconds, memory, the share of operations that a program has, and how far the plan is
/// from its bound and from what XLA does.
absl::Status MeasurePlan(const std::string& file, double seconds, Row& row);

}  // namespace coconet::bench
