#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "coconet/ir/op_table.h"

namespace coconet {

using NodeId = int32_t;

struct Node {
  Op op;
  std::vector<NodeId> inputs;
  bool operator==(const Node&) const = default;
};

/// A program: operations in topological (storage) order. With `lists` it runs on several tensors
/// (lists.h). A value: nodes are never edited, passes build a new graph. Invariant: nodes[i].inputs
/// are all < i. Names of inputs, states and outputs are unique; a state is updated at most once.
struct Graph {
  std::string name;
  std::vector<Node> nodes;
  SizeLists lists = {};  // of symbols; one length

  NodeId Add(Op op, std::vector<NodeId> inputs = {}) {
    nodes.push_back({std::move(op), std::move(inputs)});
    return static_cast<NodeId>(nodes.size()) - 1;
  }
  NodeId size() const { return static_cast<NodeId>(nodes.size()); }
  bool operator==(const Graph&) const = default;
};

template <class T>
const T* As(const Graph& g, NodeId id) {
  return std::get_if<T>(&g.nodes[id].op);
}

/// users[id] = nodes that take id as an input, ascending.
std::vector<std::vector<NodeId>> Users(const Graph& g);

/// For messages: the program's name; "the program" if it has none.
absl::string_view NameForMessages(const Graph& program);

/// How a value is written as an operand: inputs and states by name ("lr"), others by number ("%4").
std::string ValueText(const Graph& g, NodeId id);

/// A line of the text form: "%4 = div(%3, lr)", "input g : f32[N] local".
std::string NodeText(const Graph& g, NodeId id);

struct Rewritten {
  Graph graph;
  std::vector<NodeId> renamed;  // renamed[old id] = new id, or -1 where dropped
};

/// Rebuilds `g` node by node. Emit(out, old_id, inputs already renamed) -> new id in `out`.
template <class Emit>
Rewritten Rewrite(const Graph& g, Emit emit) {
  Rewritten r{{g.name, {}, g.lists}, {}};
  for (NodeId id = 0; id < g.size(); ++id) {
    std::vector<NodeId> inputs;
    for (NodeId i : g.nodes[id].inputs) inputs.push_back(r.renamed[i]);
    r.renamed.push_back(emit(r.graph, id, std::move(inputs)));
  }
  return r;
}

/// Drops nodes that no Update or Output needs (declared Inputs and States stay), merges equal ones,
/// and puts the rest in the canonical order: declarations as declared, then operands before users,
/// depth first, for the updates in the order of their states and the outputs by name. So two graphs
/// that differ by the order of other nodes or by duplicates print the same text.
Rewritten Canonicalize(const Graph& g);

/// Replaces symbols by numbers, or notes the lists that they are bound to. Fails when a symbol of
/// the program has no value, a given name is not a symbol of the program or has a list already, a
/// size is negative, the number of elements of a tensor overflows, or CheckLists does.
absl::StatusOr<Graph> BindSizes(const Graph& g, const Sizes& sizes);

}  // namespace coconet
