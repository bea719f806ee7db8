#include "coconet/schedule/schedule.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/schedule/chunks.h"
#include "coconet/schedule/rewrites.h"

namespace coconet {
namespace {

absl::Status CheckNodeIds(const Graph& g, const Transformation& t) {
  for (NodeId id : NamedNodes(t)) {
    if (id >= 0 && id < g.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat(Text(t), ": the program has no %", id,
                                                   "; its last operation is %", g.size() - 1));
  }
  return absl::OkStatus();
}

/// Slicing a vector flat is slicing its only dimension.
Transformation Normalized(const Schedule& s, Transformation t) {
  auto* split = std::get_if<Split>(&t);
  auto* by_node = std::get_if<SplitByNode>(&t);
  if (split == nullptr && by_node == nullptr) return t;
  int& dim = split != nullptr ? split->dim : by_node->dim;
  const NodeId node = NamedNodes(t)[0];
  const bool splits = As<Fold>(s.graph(), node) || Communicates(s.graph(), node);
  if (dim != Layout::kFlat || !splits) return t;
  if (s.type(s.program().inputs(node)[0]).shape.size() == 1) dim = 0;
  return t;
}

/// States that exchange values, none of them computed, have no order to be stored in.
absl::Status CheckHasOrder(const Schedule& s) {
  const Launches& launches = s.launches();
  if (s.order().size() == launches.list.size()) return absl::OkStatus();
  std::vector<std::string> updates;
  for (int launch = 0; launch < launches.size(); ++launch) {
    const NodeId id = launches[launch].nodes[0];
    if (As<Update>(s.graph(), id) && !LaunchesWithin(launches.list, launch).empty())
      updates.push_back(NodeText(s.graph(), id));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      absl::StrJoin(updates, ", "),
      ": each state takes another's value before the step, and none can be stored first; "
      "want one of the values computed"));
}

/// The first update on a cycle of launches that assigns a state's old value as it is; -1: none.
NodeId FindExchange(const Schedule& s) {
  const Graph& g = s.graph();
  for (int launch = 0; launch < s.launches().size(); ++launch) {
    const NodeId id = s.launches()[launch].nodes[0];
    if (As<Update>(g, id) && As<State>(g, s.program().value(g.nodes[id].inputs[1])) &&
        !LaunchesWithin(s.launches().list, launch).empty())
      return id;
  }
  return -1;
}

/// Lets the update assign a copy of its value: a cast to the value's own dtype.
Graph WithCopy(const TypedGraph& program, NodeId update) {
  return Rewrite(program.graph(),
                 [&](Graph& out, NodeId id, std::vector<NodeId> inputs) {
                   if (id == update) inputs[1] = out.Add(Cast{program.type(id).dtype}, {inputs[1]});
                   return out.Add(program.op(id), std::move(inputs));
                 })
      .graph;
}

/// The plain schedule of a transformed program.
absl::StatusOr<Schedule> OfGraph(const Transformation& t, absl::StatusOr<Graph> graph) {
  if (!graph.ok()) return graph.status();
  absl::StatusOr<TypedGraph> program = TypedGraph::Of(Canonicalize(*graph).graph);
  CC_CHECK(program.ok());
  Schedule result(*std::move(program), {});
  if (const absl::Status order = CheckHasOrder(result); !order.ok())
    return Refused(t, order.message());
  return result;
}

/// The fusions that a trace begins with, up to the first that has nodes of one before it.
std::vector<Fuse> DisjointFuses(absl::Span<const Transformation> trace) {
  std::vector<Fuse> fuses;
  std::set<NodeId> fused;
  for (const Transformation& t : trace) {
    const auto* fuse = std::get_if<Fuse>(&t);
    if (fuse == nullptr ||
        absl::c_any_of(fuse->nodes, [&](NodeId id) { return fused.contains(id); }))
      break;
    fused.insert(fuse->nodes.begin(), fuse->nodes.end());
    fuses.push_back(*fuse);
  }
  return fuses;
}

}  // namespace

std::shared_ptr<const Schedule::Analysis> Schedule::Analysed(
    TypedGraph program, Kernels kernels, std::shared_ptr<const std::vector<int>> levels) {
  Analysis a{std::move(program), std::move(kernels), std::move(levels), {}, {}, {}};
  a.launches = FindLaunches(a.program, a.kernels);
  a.order = InOrder(a.launches.list, RanksByLevel(a.program.graph(), a.launches, *a.levels));
  a.traffic = TrafficOf(a.program, a.launches);
  return std::make_shared<const Analysis>(std::move(a));
}

Schedule::Schedule(TypedGraph program, Kernels kernels) {
  auto levels = std::make_shared<const std::vector<int>>(Levels(program));
  *this = Schedule(
      Parts{.analysis = Analysed(std::move(program), std::move(kernels), std::move(levels))});
}

Schedule Schedule::WithKernels(Kernels kernels) const {
  Parts parts = *parts_;
  parts.analysis = Analysed(program(), std::move(kernels), parts_->analysis->levels);
  return Schedule(std::move(parts));
}

Schedule Schedule::WithOverlap(const Overlap& overlap) const {
  Parts parts = *parts_;
  parts.overlaps.insert(absl::c_upper_bound(parts.overlaps, overlap.nodes), overlap.nodes);
  return Schedule(std::move(parts));
}

Schedule Schedule::WithBucket(const Bucket& bucket) const {
  Parts parts = *parts_;
  parts.buckets.insert(absl::c_upper_bound(parts.buckets, bucket.nodes), bucket.nodes);
  return Schedule(std::move(parts));
}

Schedule Schedule::WithOrder(const Order& order) const {
  Parts parts = *parts_;
  parts.issued = order.nodes;
  return Schedule(std::move(parts));
}

Schedule Schedule::WithTrace(std::vector<Transformation> trace) const {
  Parts parts = *parts_;
  parts.trace = std::move(trace);
  return Schedule(std::move(parts));
}

Schedule Schedule::Resized(TypedGraph program) const {
  Parts parts = *parts_;
  parts.analysis = Analysed(std::move(program), kernels(), parts_->analysis->levels);
  return Schedule(std::move(parts));
}

struct Schedule::OfKinds {
  absl::once_flag made;
  TensorKinds kinds;
  std::vector<Schedule> schedules;  // by kind
};

Schedule::Schedule(Parts parts) {
  const bool has_lists = !parts.analysis->program.graph().lists.empty();
  parts.of_kinds = has_lists ? std::make_shared<OfKinds>() : nullptr;
  parts_ = std::make_shared<const Parts>(std::move(parts));
}

const Schedule::OfKinds& Schedule::MadeOfKinds() const {
  CC_CHECK(parts_->of_kinds != nullptr);
  OfKinds& of_kinds = *parts_->of_kinds;
  absl::call_once(of_kinds.made, [&] {
    of_kinds.kinds = KindsOf(graph());
    for (int tensor : of_kinds.kinds.first) {
      absl::StatusOr<TypedGraph> one = TypedGraph::Of(ProgramOf(graph(), tensor));
      CC_CHECK(one.ok());
      of_kinds.schedules.push_back(Resized(*std::move(one)));
    }
  });
  return of_kinds;
}

const TensorKinds& Schedule::kinds() const { return MadeOfKinds().kinds; }
const std::vector<Schedule>& Schedule::of_kinds() const { return MadeOfKinds().schedules; }

absl::StatusOr<Schedule> InitialSchedule(const Graph& program) {
  RETURN_IF_ERROR(TypedGraph::Of(program).status());
  ASSIGN_OR_RETURN(TypedGraph canonical,
                   TypedGraph::Of(Canonicalize(TotalBeforeRanks(program)).graph));
  Schedule schedule(std::move(canonical), {});
  for (absl::Status order; !(order = CheckHasOrder(schedule)).ok();) {
    const NodeId exchange = FindExchange(schedule);
    if (exchange < 0) return WithContext(order, NameForMessages(program));
    ASSIGN_OR_RETURN(TypedGraph copies,
                     TypedGraph::Of(Canonicalize(WithCopy(schedule.program(), exchange)).graph));
    schedule = Schedule(std::move(copies), {});
  }
  return schedule;
}

absl::StatusOr<Schedule> Apply(const Schedule& s, const Transformation& transformation) {
  RETURN_IF_ERROR(CheckNodeIds(s.graph(), transformation));
  const Transformation t = Normalized(s, transformation);
  const bool is_of_launches = std::holds_alternative<Overlap>(t) ||
                              std::holds_alternative<Bucket>(t) || std::holds_alternative<Order>(t);
  if (!s.issued().empty())
    return Refused(t, "the launches have an order already, and would change: order last");
  if (!s.overlaps().empty() && !is_of_launches)
    return Refused(t, "there are overlaps already, and their launches would change: overlap last");
  if (!s.buckets().empty() && !is_of_launches)
    return Refused(t, "there are buckets already, and their launches would change: bucket last");
  if (!s.kernels().empty() && !std::holds_alternative<Fuse>(t) && !is_of_launches)
    return Refused(t, "there are kernels already, and their nodes would change: fuse last");
  using Result = absl::StatusOr<Schedule>;
  const TypedGraph& program = s.program();
  ASSIGN_OR_RETURN(
      const Schedule result,
      std::visit(
          Match{
              [&](const Split& split) { return OfGraph(t, ApplySplit(program, split)); },
              [&](const SplitByNode& split) {
                return OfGraph(t, ApplySplitByNode(program, split));
              },
              [&](const Reorder& reorder) { return OfGraph(t, ApplyReorder(program, reorder)); },
              [&](const Slice& slice) { return OfGraph(t, ApplySlice(program, slice)); },
              [&](const Recompute& recompute) -> Result {
                ASSIGN_OR_RETURN(RecomputedSchedule recomputed, ApplyRecompute(s, recompute));
                return recomputed.schedule;
              },
              [&](const Fuse& fuse) { return FuseAll(s, {&fuse, 1}); },
              [&](const Overlap& overlap) -> Result {
                RETURN_IF_ERROR(CheckNotInBucket(s, overlap));
                const Chunks chunks = ChunksOf(s, overlap.nodes);
                if (chunks.refusal.empty()) return s.WithOverlap(overlap);
                return Refused(t, chunks.refusal);
              },
              [&](const Bucket& bucket) -> Result {
                RETURN_IF_ERROR(CheckBucket(s, bucket));
                return s.WithBucket(bucket);
              },
              [&](const Order& order) -> Result {
                RETURN_IF_ERROR(CheckOrder(s, order));
                return s.WithOrder(order);
              },
          },
          t));
  if (std::holds_alternative<Fuse>(t) || std::holds_alternative<Recompute>(t)) return result;
  std::vector<Transformation> trace = s.trace();
  trace.push_back(t);
  return result.WithTrace(std::move(trace));
}

absl::StatusOr<RecomputedSchedule> ApplyRecompute(const Schedule& s, const Recompute& recompute) {
  const Transformation t = recompute;
  RETURN_IF_ERROR(CheckNodeIds(s.graph(), t));
  if (!s.kernels().empty() || !s.overlaps().empty())
    return Refused(t, "there are kernels already, and their nodes would change: fuse last");
  ASSIGN_OR_RETURN(const Recomputed made, ApplyRecompute(s.program(), recompute));
  const Rewritten canonical = Canonicalize(made.rewritten.graph);
  RecomputedSchedule result;
  ASSIGN_OR_RETURN(TypedGraph program, TypedGraph::Of(canonical.graph));
  result.schedule = Schedule(std::move(program), {});
  if (const absl::Status order = CheckHasOrder(result.schedule); !order.ok())
    return Refused(t, order.message());
  for (NodeId id : made.rewritten.renamed) result.renamed.push_back(canonical.renamed[id]);
  for (const auto& [node, copy] : made.copies) result.copies.push_back(canonical.renamed[copy]);
  for (NodeId cast : made.casts) result.copies.push_back(canonical.renamed[cast]);
  absl::c_sort(result.copies);
  result.copies.erase(std::unique(result.copies.begin(), result.copies.end()), result.copies.end());
  std::vector<Transformation> trace = s.trace();
  trace.push_back(t);
  result.schedule = result.schedule.WithTrace(std::move(trace));
  return result;
}

absl::StatusOr<Schedule> FuseAll(const Schedule& s, absl::Span<const Fuse> fuses) {
  for (const Fuse& fuse : fuses) RETURN_IF_ERROR(CheckNodeIds(s.graph(), fuse));
  ASSIGN_OR_RETURN(Kernels kernels, ApplyFuses(s, fuses));
  std::vector<Transformation> trace = s.trace();
  trace.insert(trace.end(), fuses.begin(), fuses.end());
  Schedule fused = s.WithKernels(std::move(kernels)).WithTrace(std::move(trace));
  const Launches& launches = fused.launches();
  if (fused.order().size() == launches.list.size()) return fused;
  for (const Fuse& fuse : fuses) {
    const std::vector<int> within = LaunchesWithin(launches.list, launches.of[fuse.nodes[0]]);
    if (within.empty()) continue;
    return Refused(fuse, NodeText(s.graph(), launches[within[0]].nodes[0]),
                   " is not in the kernel, but must run after some of it and before the rest");
  }
  return fused;
}

absl::StatusOr<Schedule> Replay(const Graph& program, const std::vector<Transformation>& trace) {
  ASSIGN_OR_RETURN(Schedule s, InitialSchedule(program));
  for (size_t next = 0; next < trace.size();) {
    const std::vector<Fuse> fuses = DisjointFuses(absl::MakeConstSpan(trace).subspan(next));
    absl::StatusOr<Schedule> fused = fuses.size() > 1 ? FuseAll(s, fuses) : absl::UnknownError("");
    if (fused.ok()) {
      s = *std::move(fused);
      next += fuses.size();
    } else {  // one by one, so that the first that is refused is named
      ASSIGN_OR_RETURN(s, Apply(s, trace[next++]));
    }
  }
  return s;
}

std::string Print(const Schedule& s) {
  std::string text = Print(s.graph());
  for (const std::vector<NodeId>& kernel : s.kernels())
    absl::StrAppend(&text, "kernel ", NodeList(kernel), "\n");
  for (const std::vector<NodeId>& overlap : s.overlaps())
    absl::StrAppend(&text, "overlap ", NodeList(overlap), "\n");
  for (const std::vector<NodeId>& bucket : s.buckets())
    absl::StrAppend(&text, "bucket ", NodeList(bucket), "\n");
  if (!s.issued().empty()) absl::StrAppend(&text, "order ", NodeList(s.issued()), "\n");
  return text;
}

}  // namespace coconet
