#pragma once

#include <cstdint>
#include <memory>

#include "coconet/base/status.h"
#include "runtime/plan.h"
#include "runtime/rank.h"
#include "runtime/testing/kernels.h"

namespace coconet {

/// A plan of one AllReduce over a stage, with its own memory; `like` has its reduction and
/// rounding.
struct BoundSum {
  std::unique_ptr<Memory> in, out;
  std::unique_ptr<BoundPlan> plan;
};
inline absl::StatusOr<BoundSum> BindLibrarySum(Rank& rank, int lane, double timeout_s,
                                               DType dtype = DType::kF32,
                                               const CollectiveStep& like = {}) {
  constexpr int64_t kCount = 100;
  const Mesh& mesh = rank.mesh();
  CollectiveStep step{.kind = CollectiveStep::Kind::kAllReduce,
                      .dtype = dtype,
                      .in = 0,
                      .out = 1,
                      .count = kCount,
                      .label = "sum"};
  step.lane = lane;
  step.reduce = like.reduce;
  step.rounds_each = like.rounds_each;
  step.no_nans = like.no_nans;
  const Plan plan{.ranks = mesh.stage_size(),
                  .nodes = mesh.nodes,
                  .stages = mesh.stages,
                  .buffers = {{"in", BufferRole::kInput, dtype, kCount, false},
                              {"out", BufferRole::kOutput, dtype, kCount, false}},
                  .steps = {step},
                  .bytes_per_rank = 0};
  BoundSum bound;
  ASSIGN_OR_RETURN(bound.in, rank.Allocate(kCount * 4, false));
  ASSIGN_OR_RETURN(bound.out, rank.Allocate(kCount * 4, false));
  Memory* const buffers[] = {bound.in.get(), bound.out.get()};
  ASSIGN_OR_RETURN(bound.plan, rank.Bind(plan, HandWritten(), buffers, timeout_s));
  return bound;
}

}  // namespace coconet
