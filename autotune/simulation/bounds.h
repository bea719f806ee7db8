#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/simulation/simulate.h"
#include "autotune/simulation/task_graph.h"

namespace coconet {

/// Lower bounds of the end of an iteration for every order of the tasks on their lanes, on ranks
/// without slowdowns.
struct Bounds {
  /// Respects dependencies, that a lane runs one task at a time, and contention.
  double dependencies_us = 0;
  /// The most work of a lane, as if all lanes overlapped in full: no dependencies. That is how
  /// DisCo (Yi et al., TPDS 2022) bounds an iteration.
  double full_overlap_us = 0;
};

/// Ignores orders of lanes and priorities.
///
/// With heads and tails of tasks (the least time before and after them), each lane is a machine
/// whose bound is the preemptive schedule of Jackson (Carlier: The one-machine sequencing problem,
/// EJOR 1982). A task's head is the longest of: a path to it; and, for each lane, the earliest head
/// among the tasks of the lane that come before it, plus the work of all of these. Tails likewise.
///
/// Among several collectives of a lane, one is the last to begin. Before the one in front of it
/// begins, a computing lane has done all work that comes before the others: the work before all of
/// them, minus the work that comes before the last one only. The sets are the longest collectives,
/// up to 64.
///
/// Contention: consider the collectives of a lane with a head of at least h. None of them runs in
/// the first h or the last t microseconds, where t is their least tail. Let work w of a computing
/// lane be left for the time between, beside c microseconds of these collectives. If both run for x
/// microseconds of it, it is w + c - (1 / a + 1 / b - 1) x long with slowdowns a and b, and x is at
/// most a w and b c.
///
/// Errors as CheckTaskGraph; FailedPrecondition for dependencies in a cycle. Time:
/// O(lanes * tasks * dependencies / 64 + tasks^2 / 64) words.
absl::StatusOr<Bounds> BoundsOf(const TaskGraph& graph, const Contention& contention = {});

/// A job of one machine: the times before, on and after it.
struct MachineJob {
  double head = 0, us = 0, tail = 0;
};
/// The end of Jackson's preemptive schedule, which runs the arrived job with the longest tail. No
/// schedule of the machine, preemptive or not, ends before. O(n log n).
double PreemptiveEnd(absl::Span<const MachineJob> jobs);

}  // namespace coconet
