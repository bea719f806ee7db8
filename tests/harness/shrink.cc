#include "tests/harness/shrink.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "coconet/ir/infer.h"

namespace coconet {
namespace {

bool IsResult(const Graph& g, NodeId id) {
  return As<Update>(g, id) != nullptr || As<Output>(g, id) != nullptr;
}
bool IsDeclaration(const Graph& g, NodeId id) {
  return As<Input>(g, id) != nullptr || As<State>(g, id) != nullptr;
}

/// Declarations that nothing uses go, too.
Graph WithoutUnused(const Graph& g) {
  const std::vector<std::vector<NodeId>> users = Users(g);
  return Rewrite(g,
                 [&](Graph& out, NodeId id, std::vector<NodeId> inputs) -> NodeId {
                   if (IsDeclaration(g, id) && users[id].empty()) return -1;
                   return out.Add(g.nodes[id].op, std::move(inputs));
                 })
      .graph;
}

/// Without node `dropped`, whose users take `instead` in its place; nothing when that is no
/// program.
std::optional<Graph> Without(const Graph& g, NodeId dropped, NodeId instead) {
  Graph out{g.name, {}, g.lists};
  std::vector<NodeId> renamed;
  for (NodeId id = 0; id < g.size(); ++id) {
    if (id == dropped) {
      renamed.push_back(instead < 0 ? -1 : renamed[instead]);
      continue;
    }
    std::vector<NodeId> inputs;
    for (NodeId input : g.nodes[id].inputs) {
      if (renamed[input] < 0) return std::nullopt;
      inputs.push_back(renamed[input]);
    }
    renamed.push_back(out.Add(g.nodes[id].op, std::move(inputs)));
  }
  bool any_result = false;
  for (NodeId id = 0; id < out.size(); ++id) any_result |= IsResult(out, id);
  if (!any_result || !InferTypes(out).ok()) return std::nullopt;
  return WithoutUnused(Canonicalize(out).graph);
}

/// Every dimension of `extent` elements gets `smaller`; nothing when that is no program.
std::optional<Graph> WithExtent(const Graph& g, int64_t extent, int64_t smaller) {
  const auto shrink = [&](Shape& shape) {
    for (Dim& dim : shape) {
      if (dim == Dim(extent)) dim = smaller;
    }
  };
  Graph out = g;
  for (Node& node : out.nodes) {
    if (Shape* shape = DeclaredShape(node.op)) shrink(*shape);
  }
  if (!InferTypes(out).ok()) return std::nullopt;
  return out;
}

/// Programs of smaller tensors, one extent at a time.
std::vector<Graph> WithSmallerExtents(const Graph& g) {
  std::set<int64_t> extents;
  for (NodeId id = 0; id < g.size(); ++id) {
    const auto add = [&](const Shape& shape) {
      for (const Dim& dim : shape) extents.insert(dim.size);
    };
    if (const auto* input = As<Input>(g, id)) add(input->type.shape);
    if (const auto* state = As<State>(g, id)) add(state->type.shape);
  }
  std::vector<Graph> smaller;
  for (const int64_t extent : extents) {
    for (const int64_t fewer : {int64_t{1}, extent / 2, extent - 1}) {
      std::optional<Graph> with =
          fewer >= 1 && fewer < extent ? WithExtent(g, extent, fewer) : std::nullopt;
      if (with.has_value()) smaller.push_back(*std::move(with));
    }
  }
  return smaller;
}

/// Programs smaller by one step, the smallest first.
std::vector<Graph> Smaller(const Graph& g) {
  std::vector<Graph> smaller;
  const auto add = [&](NodeId dropped, NodeId instead) {
    std::optional<Graph> without = Without(g, dropped, instead);
    if (without.has_value() && without->size() < g.size()) smaller.push_back(*std::move(without));
  };
  for (NodeId id = 0; id < g.size(); ++id) {
    if (IsDeclaration(g, id)) continue;
    if (As<Output>(g, id) != nullptr) add(id, -1);
    for (NodeId input : g.nodes[id].inputs) add(id, input);
  }
  std::stable_sort(smaller.begin(), smaller.end(),
                   [](const Graph& a, const Graph& b) { return a.size() < b.size(); });
  for (Graph& with : WithSmallerExtents(g)) smaller.push_back(std::move(with));
  return smaller;
}

}  // namespace

Graph Shrink(const Graph& program, int tries, const std::function<bool(const Graph&)>& fails) {
  Graph smallest = program;
  for (bool progress = true; progress;) {
    progress = false;
    for (const Graph& candidate : Smaller(smallest)) {
      if (tries-- <= 0) return smallest;
      if (!fails(candidate)) continue;
      smallest = candidate;
      progress = true;
      break;
    }
  }
  return smallest;
}

}  // namespace coconet
