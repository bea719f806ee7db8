#pragma once

#include "absl/status/statusor.h"
#include "autotune/planning/iteration_plan.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

/// A schedule whose program computes some values more than once.
struct CopiedSchedule {
  Schedule schedule;
  int copies = 0;  // operations that the program has in addition
};

/// Fusion with duplication: kernels compute again what they take from other kernels, instead of
/// waiting for it and reading it. Elementwise operations that are alike (PlanItem::alike) get
/// copies together, one for each user in another kernel than theirs; a kind of them after the
/// other, as long as the first plan of the program with the copies is faster.
///
/// The result is not canonical: Canonicalize makes equal operations one, so that no trace makes it.
/// FuseAll takes it. InvalidArgument as TypedGraph::Of.
absl::StatusOr<CopiedSchedule> WithCopies(const IterationPlan& plan);

}  // namespace coconet
