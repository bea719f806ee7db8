#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/schedule/schedule.h"
#include "jit/compile/kernel_source.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "jit/launches/placed_launches.h"
#include "runtime/plan.h"

namespace coconet {

/// A lowered variant.
struct Lowered {
  Plan plan;
  KernelSource kernels;  // that the plan's steps launch; the same text for every backend
  /// The launches that have steps of the plan, in order, an overlap as one; none for a program with
  /// lists.
  std::vector<PlacedLaunch> launches;
  /// How collectives are done, for tables: "library", "one-shot", "one-shot staged", "one-shot ll",
  /// "two-shot", "direct", "ring", joined by "+"; "-" without any.
  std::string protocol;
};

/// Lowers a schedule of a bound program for the target's ranks: every input, state and output of
/// the program becomes a buffer of its name and role; kernels run in dependency order with readers
/// of an old state before its update; each value that another launch needs is a temporary
/// (PlaceTemporaries says which of them share memory). Sizes are
/// arguments of the kernels, not part of the source, so one binary serves all sizes. A program with
/// lists runs the kernels of one tensor, with a loop over a table of all; library collectives and
/// matrix products are one per tensor. The result is a function of the arguments only.
///
/// The program is one that CheckRuns admits on the target's ranks. InvalidArgument when `config` is
/// not legal for the schedule, or when its slices end within blocks of scales (CheckScaleSlices).
/// Unimplemented when an operation is opaque. FailedPrecondition when kernels depend on each other
/// in a cycle, or when tensors of some sizes need another kernel (an extent that is 1 is broadcast)
/// that must add something up over all tensors.
absl::StatusOr<Lowered> Lower(const Schedule& schedule, const Config& config, const Target& target);

/// Digest of what runs: the plan and the text of its kernels. Equal on all ranks.
std::string CodeFingerprint(const Lowered& lowered);

/// Version of the code generator: part of every tuning key; bumped when the same schedule and
/// config mean other code.
inline constexpr int kGeneratorVersion = 9;

}  // namespace coconet
