#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/finding.h"
#include "bench/harness/row.h"

namespace coconet::bench {

/// Starts workers with NodeContenders on two nodes of one rank, whose links have the rate at which
/// sending takes 0.6 to 1 of the computation, and sets the row's times, variants and ratios.
/// "ceiling" is what computation and sending, one after the other, take over OverlapBound.
/// `parts` are the arguments of a worker that measures computation and sending alone, `all` those
/// of one that measures all sides; `name` is of the tuning cache in `scratch` that they share.
/// Returns the findings of `all`.
absl::StatusOr<std::vector<Finding>> MeasureOnTwoNodes(const std::vector<std::string>& parts,
                                                       const std::vector<std::string>& all,
                                                       const std::string& scratch,
                                                       const std::string& name, Row& row);

}  // namespace coconet::bench
