#include "autotune/planning/planned_schedules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "autotune/planning/copies.h"
#include "autotune/planning/first_plan.h"
#include "autotune/planning/plan_graph.h"
#include "autotune/planning/plan_tasks.h"
#include "autotune/simulation/timeline.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// The schedule with those of the fusions that are legal, found by halving.
Schedule FuseLegal(const Schedule& s, absl::Span<const Fuse> fuses, int& refused) {
  if (fuses.empty()) return s;
  absl::StatusOr<Schedule> fused = FuseAll(s, fuses);
  if (fused.ok()) return *std::move(fused);
  if (fuses.size() == 1) {
    ++refused;
    return s;
  }
  const size_t half = fuses.size() / 2;
  return FuseLegal(FuseLegal(s, fuses.first(half), refused), fuses.subspan(half), refused);
}

Schedule WithBuckets(Schedule s, absl::Span<const Bucket> buckets) {
  for (const Bucket& bucket : buckets) {
    absl::StatusOr<Schedule> applied = Apply(s, bucket);
    CC_CHECK(applied.ok());  // plans have legal ones
    s = *std::move(applied);
  }
  return s;
}

/// `s`, of the plan's kernels, with its launches in the order in which the plan begins them.
Schedule InOrderOf(const IterationPlan& plan, const Schedule& s) {
  const Launches& launches = s.launches();
  std::vector<std::pair<double, int>> begins;  // with the group's position
  for (const Launch& launch : launches.list) {
    const int group = plan.group_of(plan.graph().item_of(launch.nodes[0]));
    begins.emplace_back(plan.IntervalOf(group).begin, plan.group(group).position);
  }
  std::vector<int> by_begin(launches.size()), ranks(launches.size());
  absl::c_iota(by_begin, 0);
  absl::c_stable_sort(by_begin, [&](int a, int b) { return begins[a] < begins[b]; });
  for (int i = 0; i < launches.size(); ++i) ranks[by_begin[i]] = i;
  Order order;
  for (int launch : InOrder(launches.list, ranks)) order.nodes.push_back(launches[launch].nodes[0]);
  absl::StatusOr<Schedule> applied = Apply(s, order);
  CC_CHECK(applied.ok());
  return *std::move(applied);
}

/// The first transformation that applies, of all nodes with `propose`; none where none does or too
/// much is rewritten.
template <class Propose>
std::optional<Schedule> ApplyFirst(const Schedule& s, int64_t& left, const Propose& propose) {
  for (NodeId id = 0; id < s.graph().size(); ++id) {
    const std::optional<Transformation> t = propose(id);
    if (!t.has_value()) continue;
    left -= s.graph().size();
    if (left < 0) return std::nullopt;
    absl::StatusOr<Schedule> applied = Apply(s, *t);
    if (applied.ok()) return *std::move(applied);
  }
  return std::nullopt;
}

/// All AllReduces of tensors split, what follows on slices, states sliced where they may be. None
/// where nothing is split, or where that would rewrite more than `most` operations.
std::optional<Schedule> SplitSchedule(Schedule s, int64_t most) {
  using Proposal = std::optional<Transformation>;
  const size_t plain = s.trace().size();
  int64_t left = most;
  const auto everywhere = [&](const auto& propose) {
    while (true) {
      std::optional<Schedule> applied =
          ApplyFirst(s, left, [&](NodeId id) { return propose(s, id); });
      if (!applied.has_value()) return;
      s = *std::move(applied);
    }
  };
  everywhere([](const Schedule& on, NodeId id) -> Proposal {
    const bool splits = As<AllReduce>(on.graph(), id) != nullptr &&
                        SpanOf(on.graph().nodes[id].op) == Span::kAll && !on.type(id).shape.empty();
    return splits ? Proposal(Split{id}) : std::nullopt;
  });
  everywhere([](const Schedule& on, NodeId id) -> Proposal {
    return As<AllGather>(on.graph(), id) ? Proposal(Reorder{id}) : std::nullopt;
  });
  everywhere([](const Schedule& on, NodeId id) -> Proposal {
    const auto* state = As<State>(on.graph(), id);
    return state != nullptr && state->type.layout.kind == Layout::Kind::kAuto ? Proposal(Slice{id})
                                                                              : std::nullopt;
  });
  if (left < 0 || s.trace().size() == plain) return std::nullopt;
  return s;
}

/// Adds those of the schedules that are faster with copies, with these.
absl::Status AddCopies(const Target& target, const CostModel& model,
                       std::vector<CopiedSchedule>& bases) {
  for (size_t i = 0, plain = bases.size(); i < plain; ++i) {
    ASSIGN_OR_RETURN(const PlanGraph graph, PlanGraph::Of(bases[i].schedule, target, model));
    CopiedSchedule copied = WithCopies(FusedPlan(graph));
    if (copied.copies > 0) bases.push_back(std::move(copied));
  }
  return absl::OkStatus();
}

}  // namespace

PlannedSchedule PlannedScheduleOf(const IterationPlan& plan, double us) {
  const PlanGraph& graph = plan.graph();
  PlannedSchedule planned{.us = us, .bound_us = BoundOf(plan)};
  std::vector<Fuse> fuses;
  std::vector<Bucket> buckets;
  for (int lane : {0, 1}) {
    for (int group : plan.order(lane)) {
      const IterationPlan::Group& g = plan.group(group);
      if (g.items.size() < 2) continue;
      std::vector<NodeId> nodes = graph.NodesOf(g.items);
      if (g.is_collective)
        buckets.push_back({std::move(nodes)});
      else
        fuses.push_back({std::move(nodes)});
    }
  }
  absl::c_sort(fuses, [](const Fuse& a, const Fuse& b) { return a.nodes < b.nodes; });
  absl::c_sort(buckets, [](const Bucket& a, const Bucket& b) { return a.nodes < b.nodes; });
  const Schedule fused = FuseLegal(graph.schedule(), fuses, planned.refused_fusions);
  planned.schedule = InOrderOf(plan, WithBuckets(fused, buckets));
  const TaskGraph tasks = TasksOf(plan);
  const absl::StatusOr<Timeline> timeline = Simulate(tasks, {.contention = graph.contention()});
  CC_CHECK(timeline.ok());
  planned.exposed_us = ExposedCommunication(tasks, *timeline);
  planned.peak_bytes = PeakBytes(tasks, *timeline);
  return planned;
}

absl::StatusOr<std::vector<PlannedSchedule>> PlannedSchedules(const Graph& program,
                                                              const Target& target,
                                                              const CostModel& model,
                                                              const PlanningOptions& options) {
  ASSIGN_OR_RETURN(Schedule plain, InitialSchedule(program));
  std::vector<CopiedSchedule> bases = {{plain}};
  std::optional<Schedule> split = SplitSchedule(plain, options.most_rewritten);
  if (split.has_value()) bases.push_back({*std::move(split)});
  if (options.copies) RETURN_IF_ERROR(AddCopies(target, model, bases));
  PlanSearchOptions search = options.search;
  search.seconds /= static_cast<double>(bases.size());
  search.evaluations /= static_cast<int64_t>(bases.size());
  search.keep = options.schedules;
  std::vector<PlannedSchedule> planned;
  for (const CopiedSchedule& base : bases) {
    ASSIGN_OR_RETURN(const PlanGraph graph, PlanGraph::Of(base.schedule, target, model));
    for (const FoundPlan& found : SearchPlans(graph, options.strategy, search).plans) {
      planned.push_back(PlannedScheduleOf(found.plan, found.us));
      planned.back().copies = base.copies;
    }
  }
  absl::c_stable_sort(
      planned, [](const PlannedSchedule& a, const PlannedSchedule& b) { return a.us < b.us; });
  // Models err by less than that.
  constexpr double kWorthMeasuring = 1.25;
  std::erase_if(planned, [best = planned[0].us](const PlannedSchedule& plan) {
    return plan.us > best * kWorthMeasuring;
  });
  if (static_cast<int>(planned.size()) > options.schedules) planned.resize(options.schedules);
  return planned;
}

}  // namespace coconet
