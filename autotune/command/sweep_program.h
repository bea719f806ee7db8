#pragma once

#include "absl/status/statusor.h"
#include "autotune/command/sweep_flags.h"
#include "coconet/ir/graph.h"

namespace coconet {

/// Returns the program that the flags name. Sizes of a training step shape it, and become
/// `built_with`. Checks that `sizes` name its symbols, and sets those that are not given: to those
/// of the preset, or N = 1Mi for a file.
absl::StatusOr<Graph> LoadSweepProgram(SweepFlags& flags);

}  // namespace coconet
