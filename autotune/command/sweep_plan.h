#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/command/sweep_flags.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// The output of `plan` for a program: its plan in figures beside its bounds and what
/// XLA would do, and its timeline. Writes the trace and the page
/// that the flags name. `progress` gets a line
/// about once a second; the search ends early when `interrupted` is true.
absl::StatusOr<std::string> PlanText(const SweepFlags& flags, const Graph& program,
                                     const std::function<void(absl::string_view)>& progress,
                                     const std::function<bool()>& interrupted);

}  // namespace coconet
