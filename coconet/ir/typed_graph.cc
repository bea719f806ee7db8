#include "coconet/ir/typed_graph.h"

#include <algorithm>

#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "coconet/ir/op_table.h"

namespace coconet {
namespace {

std::vector<NodeId> AssignedValues(const Graph& g) {
  std::vector<NodeId> values(g.nodes.size());
  for (NodeId id = 0; id < g.size(); ++id)
    values[id] = As<Update>(g, id) ? values[g.nodes[id].inputs[1]] : id;
  return values;
}

}  // namespace

TypedGraph::TypedGraph() {
  static const auto& empty = *new std::shared_ptr<const Facts>(std::make_shared<const Facts>());
  facts_ = empty;
}

absl::StatusOr<TypedGraph> TypedGraph::Of(Graph graph) {
  Facts facts;
  ASSIGN_OR_RETURN(facts.types, InferTypes(graph));
  facts.users = Users(graph);
  facts.values = AssignedValues(graph);
  facts.each = EachNodes(graph);
  for (const Node& node : graph.nodes)
    facts.traits.push_back({Communicates(node.op), IsKernelWork(node.op), SpanOf(node.op)});
  facts.graph = std::move(graph);
  auto shared = std::make_shared<Facts>(std::move(facts));
  TypedGraph program(shared);
  shared->takers = FindTakers(program);
  return program;
}

std::vector<TypedGraph::Takers> TypedGraph::FindTakers(const TypedGraph& program) {
  std::vector<Takers> takers(program.size());
  for (NodeId id = program.size() - 1; id >= 0; --id) {
    Takers& all = takers[id];
    const auto add = [&](NodeId first, NodeId last) {
      if (first >= 0 && (all.first < 0 || first < all.first)) all.first = first;
      all.last = std::max(all.last, last);
    };
    for (NodeId user : program.users()[id]) {
      const bool updates = As<Update>(program.graph(), user) != nullptr;
      if (updates && program.inputs(user)[1] != id) continue;
      if (!program.IsRecomputed(user)) add(user, user);
      if (updates || program.IsRecomputed(user)) add(takers[user].first, takers[user].last);
    }
  }
  return takers;
}

TypedGraph TypedGraph::Expanded() const {
  if (graph().lists.empty()) return *this;
  absl::StatusOr<TypedGraph> expanded = Of(Expand(graph()));
  CC_CHECK(expanded.ok());
  return *std::move(expanded);
}

}  // namespace coconet
