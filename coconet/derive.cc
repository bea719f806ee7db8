#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/fuse_moves.h"
#include "coconet/infer.h"
#include "coconet/schedule.h"
#include "coconet/steps.h"

namespace coconet {
namespace {

/// Every graph transformation that the operations allow by their kind.
std::vector<Transformation> GraphMoves(const Graph& g) {
  const absl::StatusOr<std::vector<TensorType>> types = InferTypes(g);
  CC_CHECK(types.ok());
  std::vector<Transformation> moves;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (As<AllReduce>(g, id)) {
      moves.push_back(Split{id, Layout::kFlat});
      const int rank = static_cast<int>((*types)[id].shape.size());
      for (int dim = 0; dim < rank && rank > 1; ++dim) moves.push_back(Split{id, dim});
    }
    if (As<AllGather>(g, id)) moves.push_back(Reorder{id});
    if (const auto* state = As<State>(g, id)) {
      if (state->type.layout.kind == Layout::Kind::kAuto) moves.push_back(Slice{id});
    }
  }
  return moves;
}

std::vector<Transformation> MovesOf(const Schedule& s) {
  std::vector<Transformation> moves;
  if (s.kernels.empty()) moves = GraphMoves(s.graph);
  const std::vector<Fuse> fusions = FuseMoves(s);
  moves.insert(moves.end(), fusions.begin(), fusions.end());
  return moves;
}

bool HasCollective(const Graph& g, const std::vector<NodeId>& kernel) {
  return std::any_of(kernel.begin(), kernel.end(), [&](NodeId id) { return Communicates(g, id); });
}

}  // namespace

absl::StatusOr<std::vector<Schedule>> Derive(const Graph& program, const DeriveOptions& options) {
  ASSIGN_OR_RETURN(Schedule plain, InitialSchedule(program));
  std::set<std::string> seen = {Print(plain)};
  std::vector<Schedule> schedules = {std::move(plain)};
  // Breadth first: the shortest trace is found first, and what takes fewer transformations comes first.
  for (size_t next = 0; next < schedules.size(); ++next) {
    for (const Transformation& move : MovesOf(schedules[next])) {
      absl::StatusOr<Schedule> derived = Apply(schedules[next], move);
      if (!derived.ok() || !seen.insert(Print(*derived)).second) continue;
      if (static_cast<int>(schedules.size()) >= options.max_schedules) {
        return absl::ResourceExhaustedError(absl::StrCat("derive ", program.name, ": more than ", options.max_schedules,
                                                         " schedules; raise max_schedules, or split the program"));
      }
      schedules.push_back(*std::move(derived));
    }
  }
  return schedules;
}

bool IsCommunicationUnfused(const Schedule& s) {
  return std::none_of(s.kernels.begin(), s.kernels.end(),
                      [&](const std::vector<NodeId>& kernel) { return HasCollective(s.graph, kernel); });
}

bool IsBaseline(const Schedule& s) {
  const bool as_written = std::all_of(s.trace.begin(), s.trace.end(),
                                      [](const Transformation& t) { return std::holds_alternative<Fuse>(t); });
  if (!as_written || !IsCommunicationUnfused(s)) return false;
  const std::vector<std::vector<NodeId>> groups = ComputeGroups(s);
  return std::none_of(groups.begin(), groups.end(),
                      [&](const std::vector<NodeId>& group) { return group.size() > 1 && Apply(s, Fuse{group}).ok(); });
}

}  // namespace coconet
