#include "coconet/ir/graph.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
  for (const std::string& symbol : symbols) {
    if (sizes.contains(symbol) != g.lists.contains(symbol)) continue;
    const absl::string_view what =
        sizes.contains(symbol) ? "the program has a list of them" : "no value is given";
    return absl::InvalidArgumentError(absl::StrCat("size of ", symbol, ": ", what));
  }
  for (const auto& [symbol, size] : sizes) {
    if (!symbols.contains(symbol)) {
      return absl::InvalidArgumentError(
          absl::StrCat("size of ", symbol, ": ", KnownSymbols(symbols)));
    }
    if (!size.is_list && size.sizes[0] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("size of ", symbol, ": want 0 or more, have ", size.sizes[0]));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Shape* DeclaredShape(Op& op) {
  if (auto* reshape = std::get_if<Reshape>(&op)) return &reshape->shape;
  if (auto* input = std::get_if<Input>(&op)) return &input->type.shape;
  if (auto* state = std::get_if<State>(&op)) return &state->type.shape;
  return nullptr;
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
  if (const auto* input = As<Input>(g, id)) return input->name;
  if (const auto* state = As<State>(g, id)) return state->name;
  return absl::StrCat("%", id);
}

std::string NodeText(const Graph& g, NodeId id) {
  const Node& node = g.nodes[id];
  std::vector<std::string> operands;
  for (NodeId input : node.inputs) operands.push_back(ValueText(g, input));
  const std::string text = OpText(node.op, operands);
  const bool names_itself = As<Input>(g, id) || As<State>(g, id) || As<Output>(g, id);
  return names_itself ? text : absl::StrCat("%", id, " = ", text);
}

absl::StatusOr<Graph> BindSizes(const Graph& g, const Sizes& sizes) {
  std::set<std::string> symbols;
  Graph bound = g;
  for (Node& node : bound.nodes) {
    Shape* shape = DeclaredShape(node.op);
    if (shape == nullptr) continue;
    for (Dim& dim : *shape) {
      if (dim.bound()) continue;
      symbols.insert(dim.symbol);
      if (auto size = sizes.find(dim.symbol); size != sizes.end() && !size->second.is_list)
        dim = Dim(size->second.sizes[0]);
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

}  // namespace coconet
