#include "autotune/search/parts.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "autotune/search/sizes/small_sizes.h"
#include "coconet/base/status.h"
#include "coconet/ir/typed_graph.h"
#include "coconet/schedule/describe.h"
#include "jit/lower/join.h"

namespace coconet {
namespace {

constexpr absl::string_view kApart = "apart ";

/// Finds the parts of a program.
class Splitter {
 public:
  explicit Splitter(const TypedGraph& program)
      : p_(program), g_(program.graph()), shared_(g_.size()), root_(g_.size()) {
    std::iota(root_.begin(), root_.end(), 0);
    for (NodeId id = 0; id < g_.size(); ++id) shared_[id] = IsShared(id);
    for (NodeId id = 0; id < g_.size(); ++id) {
      for (NodeId input : g_.nodes[id].inputs) {
        if (!shared_[id] && !shared_[input]) root_[Find(id)] = Find(input);
      }
    }
  }

  /// By part its nodes, ascending, with the shared ones that it takes.
  std::vector<std::vector<NodeId>> Find() {
    std::map<NodeId, std::set<NodeId>> parts;  // by root
    std::set<NodeId> storing;                  // roots of parts that store something
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (shared_[id]) continue;
      parts[Find(id)].insert(id);
      if (As<Update>(g_, id) || As<Output>(g_, id)) storing.insert(Find(id));
    }
    std::vector<std::set<NodeId>> found;
    std::set<NodeId> left;  // declarations that nothing takes go with the first part
    for (NodeId id = 0; id < g_.size(); ++id) left.insert(id);
    for (auto& [root, nodes] : parts) {
      if (!storing.contains(root)) continue;
      AddShared(nodes);
      for (NodeId id : nodes) left.erase(id);
      found.push_back(std::move(nodes));
    }
    if (!found.empty()) found[0].insert(left.begin(), left.end());
    absl::c_sort(found, [&](const auto& a, const auto& b) { return First(a) < First(b); });
    std::vector<std::vector<NodeId>> sorted;
    for (const std::set<NodeId>& nodes : found) sorted.emplace_back(nodes.begin(), nodes.end());
    return sorted;
  }

 private:
  NodeId Find(NodeId id) {
    while (root_[id] != id) id = root_[id] = root_[root_[id]];
    return id;
  }
  /// What each part can read, or compute, for itself.
  bool IsShared(NodeId id) const {
    if (!p_.type(id).shape.empty() || As<State>(g_, id)) return false;
    if (g_.nodes[id].inputs.empty()) return true;
    return p_.IsRecomputed(id) &&
           absl::c_all_of(g_.nodes[id].inputs, [&](NodeId input) { return shared_[input]; });
  }
  void AddShared(std::set<NodeId>& nodes) const {
    std::vector<NodeId> stack(nodes.begin(), nodes.end());
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      for (NodeId input : g_.nodes[id].inputs) {
        if (shared_[input] && nodes.insert(input).second) stack.push_back(input);
      }
    }
  }
  NodeId First(const std::set<NodeId>& nodes) const {
    return *absl::c_find_if(nodes, [&](NodeId id) { return !shared_[id]; });
  }

  const TypedGraph& p_;
  const Graph& g_;
  std::vector<bool> shared_;
  std::vector<NodeId> root_;
};

/// The nodes as a program of its own, with names that say nothing but the order of declarations,
/// and of outputs' names, which the canonical order goes by.
Graph AsProgram(const Graph& whole, const std::vector<NodeId>& nodes, Parts::Part& part) {
  std::set<std::string> outputs;
  for (NodeId id : nodes) {
    if (const auto* output = As<Output>(whole, id)) outputs.insert(output->name);
  }
  Graph program{"part", {}};
  std::map<NodeId, NodeId> number;
  int declared = 0;
  for (NodeId id : nodes) {
    Node node = whole.nodes[id];
    for (NodeId& input : node.inputs) input = number.at(input);
    if (std::string* name = DeclaredIn(node.op).name) {
      const bool is_output = std::holds_alternative<Output>(node.op);
      const auto at = std::distance(outputs.begin(), outputs.find(*name));
      std::string own = is_output ? absl::StrFormat("y%06d", at) : absl::StrCat("x", declared++);
      part.names[own] = *name;
      *name = std::move(own);
    }
    number[id] = program.Add(std::move(node.op), std::move(node.inputs));
  }
  return program;
}

/// The graphs of all parts in one.
class Whole {
 public:
  explicit Whole(std::string name) : graph_{std::move(name), {}} {}

  void Add(const Schedule& schedule, const std::map<std::string, std::string>& names) {
    std::vector<NodeId> number;
    for (Node node : schedule.graph().nodes) {
      for (NodeId& input : node.inputs) input = number[input];
      if (std::string* name = DeclaredIn(node.op).name) *name = names.at(*name);
      const auto* input = std::get_if<Input>(&node.op);
      const auto shared = input != nullptr ? inputs_.find(input->name) : inputs_.end();
      if (shared != inputs_.end()) {
        number.push_back(shared->second);
        continue;
      }
      const std::string declared = input != nullptr ? input->name : "";
      number.push_back(graph_.Add(std::move(node.op), std::move(node.inputs)));
      if (!declared.empty()) inputs_[declared] = number.back();
    }
    const auto numbered = [&](std::vector<NodeId> ids) {
      for (NodeId& id : ids) id = number[id];
      return ids;
    };
    for (const auto& kernel : schedule.kernels()) kernels_.push_back(numbered(kernel));
    for (const auto& overlap : schedule.overlaps()) overlaps_.push_back({numbered(overlap)});
    for (const auto& bucket : schedule.buckets()) buckets_.push_back({numbered(bucket)});
  }

  Schedule Finish() && {
    absl::StatusOr<TypedGraph> program = TypedGraph::Of(std::move(graph_));
    CC_CHECK(program.ok());
    Schedule schedule(*std::move(program), std::move(kernels_));
    for (const Overlap& overlap : overlaps_) schedule = schedule.WithOverlap(overlap);
    for (const Bucket& bucket : buckets_) schedule = schedule.WithBucket(bucket);
    return schedule;
  }

 private:
  Graph graph_;
  std::map<std::string, NodeId> inputs_;
  Kernels kernels_;
  std::vector<Overlap> overlaps_;
  std::vector<Bucket> buckets_;
};

absl::StatusOr<PartVariant> ParseVariant(absl::string_view text, const Graph& program,
                                         const ConfigSpace& space) {
  const std::vector<absl::string_view> halves = absl::StrSplit(text, " | ");
  if (halves.size() != 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("want a part as \"trace | config\", have \"", text, "\""));
  }
  PartVariant variant;
  ASSIGN_OR_RETURN(const std::vector<Transformation> trace, ParseTrace(halves[0]));
  ASSIGN_OR_RETURN(variant.schedule, Replay(program, trace));
  ASSIGN_OR_RETURN(variant.config, ParseConfig(halves[1]));
  RETURN_IF_ERROR(Validate(variant.config, variant.schedule, space));
  return variant;
}

}  // namespace

Parts SplitIntoParts(const Graph& program) {
  Parts parts{program.name, {}, {}};
  const absl::StatusOr<TypedGraph> typed = TypedGraph::Of(program);
  CC_CHECK(typed.ok());
  std::vector<std::vector<NodeId>> split;
  if (program.lists.empty()) split = Splitter(*typed).Find();
  if (split.size() <= 1) {
    Parts::Part& all = parts.parts.emplace_back();
    for (Node node : program.nodes) {
      if (const std::string* name = DeclaredIn(node.op).name) all.names[*name] = *name;
    }
    parts.kinds.push_back(program);
    return parts;
  }
  std::map<std::string, int> kinds;  // by text
  for (const std::vector<NodeId>& nodes : split) {
    Parts::Part& part = parts.parts.emplace_back();
    const absl::StatusOr<Schedule> plain = InitialSchedule(AsProgram(program, nodes, part));
    CC_CHECK(plain.ok());
    const auto [kind, is_new] =
        kinds.try_emplace(Print(*plain), static_cast<int>(parts.kinds.size()));
    if (is_new) parts.kinds.push_back(plain->graph());
    part.kind = kind->second;
  }
  return parts;
}

std::string Text(const Combination& combination) {
  std::vector<std::string> kinds;
  for (const PartVariant& kind : combination.kinds)
    kinds.push_back(
        absl::StrCat("{", TraceText(kind.schedule.trace()), " | ", Text(kind.config), "}"));
  return absl::StrCat(kApart, absl::StrJoin(kinds, " "));
}

bool IsCombination(absl::string_view text) { return absl::StartsWith(text, kApart); }

absl::StatusOr<Combination> ParseCombination(absl::string_view text,
                                             std::shared_ptr<const Parts> parts,
                                             const ConfigSpace& space) {
  const bool whole = absl::ConsumePrefix(&text, kApart) && absl::ConsumePrefix(&text, "{") &&
                     absl::ConsumeSuffix(&text, "}");
  const std::vector<absl::string_view> kinds = absl::StrSplit(text, "} {");
  if (!whole || kinds.size() != parts->kinds.size() || parts->parts.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat("want \"", kApart, "{...}\" with ",
                                                   parts->kinds.size(), " kinds of parts, have ",
                                                   kinds.size(), " in \"", text, "\""));
  }
  Combination combination{parts, {}};
  for (size_t kind = 0; kind < kinds.size(); ++kind) {
    ASSIGN_OR_RETURN(PartVariant variant, ParseVariant(kinds[kind], parts->kinds[kind], space));
    combination.kinds.push_back(std::move(variant));
  }
  return combination;
}

std::string Describe(const Combination& combination) {
  std::vector<int> counts(combination.kinds.size());
  for (const Parts::Part& part : combination.parts->parts) ++counts[part.kind];
  std::vector<std::string> words;
  for (size_t kind = 0; kind < counts.size(); ++kind) {
    const PartVariant& variant = combination.kinds[kind];
    words.push_back(absl::StrCat(counts[kind], "x [", Describe(variant.schedule), ": ",
                                 Text(variant.config), "]"));
  }
  return absl::StrJoin(words, " + ");
}

Schedule ScheduleOf(const Combination& combination) {
  Whole whole(combination.parts->name);
  for (const Parts::Part& part : combination.parts->parts)
    whole.Add(combination.kinds[part.kind].schedule, part.names);
  return std::move(whole).Finish();
}

absl::StatusOr<Combination> Resized(const Combination& combination,
                                    const std::map<int64_t, int64_t>& extents) {
  Combination resized = combination;
  for (PartVariant& kind : resized.kinds) {
    ASSIGN_OR_RETURN(TypedGraph program,
                     TypedGraph::Of(WithExtents(kind.schedule.graph(), extents)));
    kind.schedule = kind.schedule.Resized(std::move(program));
  }
  return resized;
}

absl::StatusOr<Lowered> LowerApart(const Combination& combination, const Target& target) {
  std::vector<std::shared_ptr<const Lowered>> kinds;
  for (const PartVariant& kind : combination.kinds) {
    ASSIGN_OR_RETURN(Lowered lowered, Lower(kind.schedule, kind.config, target));
    kinds.push_back(std::make_shared<const Lowered>(std::move(lowered)));
  }
  std::vector<JoinedPart> parts;
  for (const Parts::Part& part : combination.parts->parts)
    parts.push_back({kinds[part.kind], part.names});
  return Join(parts);
}

}  // namespace coconet
