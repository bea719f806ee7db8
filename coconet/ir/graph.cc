#include "coconet/ir/graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/ir/typed_graph.h"

namespace coconet {
namespace {

std::string KnownSymbols(const std::set<std::string>& symbols) {
  if (symbols.empty()) return "the program has no symbols";
  return absl::StrCat("the program's symbols are ", absl::StrJoin(symbols, ", "));
}

/// `sizes` are those of the program's symbols that have no list yet.
absl::Status CheckGiven(const Graph& g, const std::set<std::string>& symbols, const Sizes& sizes) {
  for (const auto& [symbol, size] : sizes) {
    if (!symbols.contains(symbol)) {
      return absl::InvalidArgumentError(
          absl::StrCat("size of ", symbol, ": ", KnownSymbols(symbols),
                       DidYouMean(symbol, {symbols.begin(), symbols.end()})));
    }
    if (!size.is_list && size.sizes[0] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("size of ", symbol, ": want 0 or more, have ", size.sizes[0]));
    }
  }
  for (const std::string& symbol : symbols) {
    if (sizes.contains(symbol) != g.lists.contains(symbol)) continue;
    const absl::string_view what =
        sizes.contains(symbol) ? "the program has a list of them" : "no value is given";
    return absl::InvalidArgumentError(absl::StrCat("size of ", symbol, ": ", what));
  }
  return absl::OkStatus();
}

/// What must stay, in the canonical order: declarations as declared, then updates in the order of
/// their states, then outputs by name.
std::vector<NodeId> Roots(const Graph& g) {
  std::vector<NodeId> declarations, updates;
  std::map<std::string, NodeId> outputs;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (RoleOf(g.nodes[id].op) == Role::kDeclaration) declarations.push_back(id);
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

absl::string_view NameForMessages(const Graph& program) {
  return program.name.empty() ? absl::string_view("the program") : program.name;
}

std::vector<std::vector<NodeId>> Users(const Graph& g) {
  std::vector<std::vector<NodeId>> users(g.nodes.size());
  for (NodeId id = 0; id < g.size(); ++id) {
    for (NodeId input : g.nodes[id].inputs) {
      if (users[input].empty() || users[input].back() != id) users[input].push_back(id);
    }
  }
  return users;
}

std::string ValueText(const Graph& g, NodeId id) {
  const Op& op = g.nodes[id].op;
  if (RoleOf(op) == Role::kDeclaration) return *DeclaredName(op);
  return absl::StrCat("%", id);
}

std::string NodeText(const Graph& g, NodeId id) {
  const Node& node = g.nodes[id];
  std::vector<std::string> operands;
  for (NodeId input : node.inputs) operands.push_back(ValueText(g, input));
  const std::string text = OpText(node.op, operands);
  return DeclaredName(node.op) != nullptr ? text : absl::StrCat("%", id, " = ", text);
}

absl::StatusOr<Graph> BindSizes(const Graph& g, const Sizes& sizes) {
  std::set<std::string> symbols;
  Graph bound = g;
  for (Node& node : bound.nodes) {
    if (std::string* by = WeightsIn(node.op); by != nullptr && !by->empty()) {
      symbols.insert(*by);
      const auto size = sizes.find(*by);
      // In a program without lists every tensor is alone.
      if (size != sizes.end() && !size->second.is_list) by->clear();
    }
    Shape* shape = DeclaredShape(node.op);
    if (shape == nullptr) continue;
    for (Dim& dim : *shape) {
      if (dim.bound()) continue;
      for (const std::string& symbol : SymbolsOf(dim)) symbols.insert(symbol);
      dim = WithSizes(dim, [&](const std::string& symbol) -> std::optional<int64_t> {
        const auto size = sizes.find(symbol);
        if (size == sizes.end() || size->second.is_list) return std::nullopt;
        return size->second.sizes[0];
      });
    }
  }
  RETURN_IF_ERROR(CheckGiven(g, symbols, sizes));
  for (const auto& [symbol, size] : sizes) {
    if (size.is_list) bound.lists[symbol] = size.sizes;
  }
  RETURN_IF_ERROR(TypedGraph::Of(bound).status());  // sizes of declared and of computed tensors
  RETURN_IF_ERROR(CheckLists(bound));
  return bound;
}

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
