#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "coconet/ir/graph.h"

namespace coconet {
namespace {

/// What must stay, in the canonical order: declarations as declared, then updates in the order of
/// their states, then outputs by name.
std::vector<NodeId> Roots(const Graph& g) {
  std::vector<NodeId> declarations, updates;
  std::map<std::string, NodeId> outputs;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (As<Input>(g, id) || As<State>(g, id)) declarations.push_back(id);
    if (As<Update>(g, id)) updates.push_back(id);
    if (const auto* output = As<Output>(g, id)) outputs.emplace(output->name, id);
  }
  std::stable_sort(updates.begin(), updates.end(),
                   [&](NodeId a, NodeId b) { return g.nodes[a].inputs[0] < g.nodes[b].inputs[0]; });
  std::vector<NodeId> roots = std::move(declarations);
  roots.insert(roots.end(), updates.begin(), updates.end());
  for (const auto& [name, id] : outputs) roots.push_back(id);
  return roots;
}

}  // namespace

Rewritten Canonicalize(const Graph& g) {
  Rewritten r{{g.name, {}, g.lists}, std::vector<NodeId>(g.nodes.size(), -1)};
  std::map<std::string, NodeId> emitted;  // by text of the operation
  for (NodeId root : Roots(g)) {
    // Operands before their users, depth first; the stack is explicit since graphs may be deep.
    std::vector<NodeId> stack = {root};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      const Node& node = g.nodes[id];
      const auto missing = std::find_if(node.inputs.begin(), node.inputs.end(),
                                        [&](NodeId input) { return r.renamed[input] < 0; });
      if (r.renamed[id] < 0 && missing != node.inputs.end()) {
        stack.push_back(*missing);
        continue;
      }
      stack.pop_back();
      if (r.renamed[id] >= 0) continue;
      std::vector<NodeId> inputs;
      std::vector<std::string> operands;
      for (NodeId input : node.inputs) {
        inputs.push_back(r.renamed[input]);
        operands.push_back(absl::StrCat("%", r.renamed[input]));
      }
      const auto [slot, is_new] = emitted.try_emplace(OpText(node.op, operands), r.graph.size());
      if (is_new) r.graph.Add(node.op, std::move(inputs));
      r.renamed[id] = slot->second;
    }
  }
  return r;
}

}  // namespace coconet
