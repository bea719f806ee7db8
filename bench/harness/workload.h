#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/workloads/workloads.h"

namespace coconet::bench {

/// The program of a workload, bound to sizes.
absl::StatusOr<Graph> BoundWorkload(absl::string_view name, DType dtype, const Sizes& sizes);

/// The program of a text (docs/language.md) without its version, in which "$0" stands for `dtype`,
/// bound to sizes.
absl::StatusOr<Graph> BoundText(absl::string_view text, DType dtype, const Sizes& sizes);

/// The workloads of these names, all but those of several stages if there are none.
/// InvalidArgument, with the names that there are, for another.
absl::StatusOr<std::vector<WorkloadInfo>> WorkloadsOf(const std::vector<std::string>& names);

}  // namespace coconet::bench
