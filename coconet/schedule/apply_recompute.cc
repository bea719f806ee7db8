#include <algorithm>
#include <functional>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"
#include "coconet/schedule/rewrites.h"

namespace coconet {
namespace {

bool IsAscending(const std::vector<NodeId>& nodes) {
  return !nodes.empty() && std::adjacent_find(nodes.begin(), nodes.end(),
                                              std::greater_equal<NodeId>()) == nodes.end();
}

/// The operand of a copy that is cast: a tensor where there is one.
size_t OperandToCast(const TypedGraph& program, const Node& node) {
  const auto tensor = absl::c_find_if(
      node.inputs, [&](NodeId input) { return !program.type(input).shape.empty(); });
  return tensor == node.inputs.end() ? 0 : static_cast<size_t>(tensor - node.inputs.begin());
}
Cast OwnCast(const TypedGraph& program, NodeId id) { return Cast{program.type(id).dtype}; }

/// The cast that a copy of a node would have, if there is one: then it was computed again already.
NodeId FindCast(const TypedGraph& program, NodeId id) {
  const Node& node = program.graph().nodes[id];
  const NodeId operand = node.inputs[OperandToCast(program, node)];
  for (NodeId user : program.users()[operand]) {
    const auto* cast = As<Cast>(program.graph(), user);
    if (cast != nullptr && *cast == OwnCast(program, operand)) return user;
  }
  return -1;
}

absl::Status Check(const TypedGraph& program, const Recompute& t) {
  const Graph& g = program.graph();
  if (!IsAscending(t.nodes) || !IsAscending(t.users))
    return Refused(t, "want nodes and users, each in ascending order");
  for (NodeId id : t.nodes) {
    if (!IsElementwise(g.nodes[id].op) || g.nodes[id].inputs.empty())
      return Refused(t, "want elementwise operations, have ", NodeText(g, id));
    if (program.type(id).shape.empty())
      return Refused(t, NodeText(g, id), " is a scalar, which is computed wherever it is needed");
    const bool differs = absl::c_any_of(
        g.nodes[id].inputs, [&](NodeId input) { return absl::c_binary_search(t.nodes, input); });
    if (const NodeId cast = FindCast(program, id); !differs && cast >= 0)
      return Refused(t, NodeText(g, id), " would have the copy's cast ", NodeText(g, cast));
    const bool is_taken = absl::c_any_of(program.users()[id], [&](NodeId user) {
      return absl::c_binary_search(t.users, user) || absl::c_binary_search(t.nodes, user);
    });
    if (!is_taken) return Refused(t, "none of them takes ", NodeText(g, id));
  }
  for (NodeId user : t.users) {
    if (absl::c_binary_search(t.nodes, user))
      return Refused(t, NodeText(g, user), " is to be computed again and to take copies");
    const bool takes = absl::c_any_of(
        g.nodes[user].inputs, [&](NodeId input) { return absl::c_binary_search(t.nodes, input); });
    if (!takes) return Refused(t, NodeText(g, user), " takes none of them");
  }
  return absl::OkStatus();
}

/// The graph with the copies while it grows.
class Copying {
 public:
  Copying(const TypedGraph& program, const Recompute& t)
      : program_(program), g_(program.graph()), t_(t) {
    made_.rewritten.graph = {g_.name, {}, g_.lists};
  }

  Recomputed Make() && {
    for (NodeId id = 0; id < g_.size(); ++id) {
      const bool takes = absl::c_binary_search(t_.users, id);
      std::vector<NodeId> inputs;
      for (NodeId input : g_.nodes[id].inputs)
        inputs.push_back(takes && IsCopied(input) ? CopyOf(input) : made_.rewritten.renamed[input]);
      made_.rewritten.renamed.push_back(Add(g_.nodes[id].op, std::move(inputs)));
    }
    return std::move(made_);
  }

 private:
  bool IsCopied(NodeId id) const { return absl::c_binary_search(t_.nodes, id); }
  NodeId Add(const Op& op, std::vector<NodeId> inputs) {
    return made_.rewritten.graph.Add(op, std::move(inputs));
  }

  NodeId CopyOf(NodeId id) {
    if (const auto copy = made_.copies.find(id); copy != made_.copies.end()) return copy->second;
    const Node& node = g_.nodes[id];
    std::vector<NodeId> inputs;
    bool differs = false;
    for (NodeId input : node.inputs) {
      differs = differs || IsCopied(input);
      inputs.push_back(IsCopied(input) ? CopyOf(input) : made_.rewritten.renamed[input]);
    }
    if (!differs) {
      const size_t at = OperandToCast(program_, node);
      inputs[at] = Add(OwnCast(program_, node.inputs[at]), {inputs[at]});
      made_.casts.push_back(inputs[at]);
    }
    const NodeId copy = Add(node.op, std::move(inputs));
    made_.copies.emplace(id, copy);
    return copy;
  }

  const TypedGraph& program_;
  const Graph& g_;
  const Recompute& t_;
  Recomputed made_;
};

}  // namespace

absl::StatusOr<Recomputed> ApplyRecompute(const TypedGraph& program, const Recompute& recompute) {
  RETURN_IF_ERROR(Check(program, recompute));
  return Copying(program, recompute).Make();
}

}  // namespace coconet
