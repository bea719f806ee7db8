#include "coconet/schedule/schedule.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/schedule/chunks.h"
#include "coconet/schedule/rewrites.h"
#include "coconet/schedule/steps.h"

namespace coconet {
namespace {

std::string NodeList(const std::vector<NodeId>& nodes) {
  return nodes.empty() ? "" : absl::StrCat("%", absl::StrJoin(nodes, " %"));
}

std::vector<NodeId> NamedNodes(const Transformation& t) {
  return std::visit(Match{
                        [](const Split& s) { return std::vector<NodeId>{s.node}; },
                        [](const SplitByNode& s) { return std::vector<NodeId>{s.node}; },
                        [](const Reorder& r) { return std::vector<NodeId>{r.all_gather}; },
                        [](const Slice& s) { return std::vector<NodeId>{s.state}; },
                        [](const Fuse& f) { return f.nodes; },
                        [](const Overlap& o) { return o.nodes; },
                    },
                    t);
}

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
  const std::vector<NodeId>& inputs = s.graph.nodes[NamedNodes(t)[0]].inputs;
  const bool splits =
      As<Fold>(s.graph, NamedNodes(t)[0]) || Communicates(s.graph, NamedNodes(t)[0]);
  if (dim != Layout::kFlat || !splits) return t;
  const absl::StatusOr<std::vector<TensorType>> types = InferTypes(s.graph);
  CC_CHECK(types.ok());
  if ((*types)[inputs[0]].shape.size() == 1) dim = 0;
  return t;
}

/// States that exchange values, none of them computed, have no order to be stored in.
absl::Status CheckHasOrder(const Graph& g) {
  const Steps steps = FindSteps(g, {});
  const std::vector<int> order = InOrder(steps, std::vector<int>(steps.nodes.size()));
  if (order.size() == steps.nodes.size()) return absl::OkStatus();
  std::vector<std::string> updates;
  for (int step = 0; step < static_cast<int>(steps.nodes.size()); ++step) {
    const NodeId id = steps.nodes[step][0];
    if (As<Update>(g, id) && !StepsWithin(steps, step).empty()) updates.push_back(NodeText(g, id));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      absl::StrJoin(updates, ", "),
      ": each state takes another's value before the step, and none can be stored first; "
      "want one of the values computed"));
}

absl::StatusOr<Schedule> WithGraph(const Schedule& s, const Transformation& t,
                                   absl::StatusOr<Graph> graph) {
  if (!graph.ok()) return graph.status();
  Schedule out{Canonicalize(*graph).graph, {}, {}, s.trace};
  CC_CHECK(InferTypes(out.graph).ok());
  if (const absl::Status order = CheckHasOrder(out.graph); !order.ok())
    return Refused(t, order.message());
  return out;
}

absl::StatusOr<NodeId> ParseNodeId(absl::string_view word) {
  NodeId id = -1;
  if (absl::ConsumePrefix(&word, "%") && absl::SimpleAtoi(word, &id) && id >= 0) return id;
  return absl::InvalidArgumentError("want the number of a node, as in %4");
}

template <class AnySplit>
absl::StatusOr<Transformation> ParseSplit(absl::string_view arguments) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(arguments, absl::MaxSplits(',', 1));
  ASSIGN_OR_RETURN(const NodeId node, ParseNodeId(absl::StripAsciiWhitespace(parts.first)));
  const absl::string_view dim_text = absl::StripAsciiWhitespace(parts.second);
  int dim = Layout::kFlat;
  if (dim_text != "flat" && !(absl::SimpleAtoi(dim_text, &dim) && dim >= 0)) {
    return absl::InvalidArgumentError("want flat or the number of a dimension after the comma");
  }
  return AnySplit{node, dim};
}

absl::StatusOr<std::vector<NodeId>> ParseNodeIds(absl::string_view arguments) {
  std::vector<NodeId> nodes;
  for (absl::string_view word : absl::StrSplit(arguments, ' ', absl::SkipWhitespace())) {
    ASSIGN_OR_RETURN(const NodeId id, ParseNodeId(word));
    nodes.push_back(id);
  }
  return nodes;
}

absl::StatusOr<Transformation> ParseTransformation(absl::string_view text) {
  const size_t open = text.find('(');
  if (open == absl::string_view::npos || !absl::EndsWith(text, ")")) {
    return absl::InvalidArgumentError("want name(arguments)");
  }
  const absl::string_view name = text.substr(0, open);
  const absl::string_view arguments =
      absl::StripAsciiWhitespace(text.substr(open + 1, text.size() - open - 2));
  if (name == "split") return ParseSplit<Split>(arguments);
  if (name == "split_by_node") return ParseSplit<SplitByNode>(arguments);
  if (name == "fuse" || name == "overlap") {
    ASSIGN_OR_RETURN(std::vector<NodeId> nodes, ParseNodeIds(arguments));
    if (name == "fuse") return Fuse{std::move(nodes)};
    return Overlap{std::move(nodes)};
  }
  if (name != "reorder" && name != "slice") {
    return absl::InvalidArgumentError("want split, split_by_node, reorder, slice, fuse or overlap");
  }
  ASSIGN_OR_RETURN(const NodeId id, ParseNodeId(arguments));
  if (name == "reorder") return Reorder{id};
  return Slice{id};
}

}  // namespace

absl::StatusOr<Schedule> InitialSchedule(const Graph& program) {
  RETURN_IF_ERROR(InferTypes(program).status());
  Schedule schedule{Canonicalize(TotalBeforeRanks(program)).graph, {}, {}, {}};
  RETURN_IF_ERROR(
      WithContext(CheckHasOrder(schedule.graph), absl::StrCat("program ", program.name)));
  return schedule;
}

absl::StatusOr<Schedule> Apply(const Schedule& s, const Transformation& transformation) {
  RETURN_IF_ERROR(CheckNodeIds(s.graph, transformation));
  const Transformation t = Normalized(s, transformation);
  const bool overlaps = std::holds_alternative<Overlap>(t);
  if (!s.overlaps.empty() && !overlaps)
    return Refused(t, "there are overlaps already, and their launches would change: overlap last");
  if (!s.kernels.empty() && !std::holds_alternative<Fuse>(t) && !overlaps) {
    return Refused(t, "there are kernels already, and their nodes would change: fuse last");
  }
  absl::StatusOr<Schedule> result = std::visit(
      Match{
          [&](const Split& split) { return WithGraph(s, t, ApplySplit(s.graph, split)); },
          [&](const SplitByNode& split) {
            return WithGraph(s, t, ApplySplitByNode(s.graph, split));
          },
          [&](const Reorder& reorder) { return WithGraph(s, t, ApplyReorder(s.graph, reorder)); },
          [&](const Slice& slice) { return WithGraph(s, t, ApplySlice(s.graph, slice)); },
          [&](const Fuse& fuse) -> absl::StatusOr<Schedule> {
            ASSIGN_OR_RETURN(auto kernels, ApplyFuse(s.graph, s.kernels, fuse));
            return Schedule{s.graph, std::move(kernels), {}, s.trace};
          },
          [&](const Overlap& overlap) -> absl::StatusOr<Schedule> {
            if (const Chunks chunks = ChunksOf(s, overlap.nodes); !chunks.refusal.empty())
              return Refused(t, chunks.refusal);
            Schedule out = s;
            out.overlaps.push_back(overlap.nodes);
            std::sort(out.overlaps.begin(), out.overlaps.end());
            return out;
          },
      },
      t);
  if (result.ok()) result->trace.push_back(t);
  return result;
}

std::string Text(const Transformation& t) {
  return std::visit(
      Match{
          [](const Split& s) { return absl::StrCat("split(%", s.node, ", ", DimText(s.dim), ")"); },
          [](const SplitByNode& s) {
            return absl::StrCat("split_by_node(%", s.node, ", ", DimText(s.dim), ")");
          },
          [](const Reorder& r) { return absl::StrCat("reorder(%", r.all_gather, ")"); },
          [](const Slice& s) { return absl::StrCat("slice(%", s.state, ")"); },
          [](const Fuse& f) { return absl::StrCat("fuse(", NodeList(f.nodes), ")"); },
          [](const Overlap& o) { return absl::StrCat("overlap(", NodeList(o.nodes), ")"); },
      },
      t);
}

std::string TraceText(const std::vector<Transformation>& trace) {
  return absl::StrJoin(trace, "; ",
                       [](std::string* out, const Transformation& t) { out->append(Text(t)); });
}

absl::StatusOr<std::vector<Transformation>> ParseTrace(absl::string_view text) {
  std::vector<Transformation> trace;
  if (absl::StripAsciiWhitespace(text).empty()) return trace;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(part);
    absl::StatusOr<Transformation> t = ParseTransformation(stripped);
    if (!t.ok()) return WithContext(t.status(), absl::StrCat("schedule, at '", stripped, "'"));
    trace.push_back(*std::move(t));
  }
  return trace;
}

absl::StatusOr<Schedule> Replay(const Graph& program, const std::vector<Transformation>& trace) {
  ASSIGN_OR_RETURN(Schedule s, InitialSchedule(program));
  for (const Transformation& t : trace) {
    ASSIGN_OR_RETURN(s, Apply(s, t));
  }
  return s;
}

std::string Print(const Schedule& s) {
  std::string text = Print(s.graph);
  for (const std::vector<NodeId>& kernel : s.kernels)
    absl::StrAppend(&text, "kernel ", NodeList(kernel), "\n");
  for (const std::vector<NodeId>& overlap : s.overlaps)
    absl::StrAppend(&text, "overlap ", NodeList(overlap), "\n");
  return text;
}

}  // namespace coconet
