#include "coconet/ir/lists.h"

#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/typed_graph.h"

namespace coconet {
namespace {

constexpr size_t kMostTensors = 1 << 16;

bool Mentions(const Shape& shape, const SizeLists& lists) {
  return absl::c_any_of(shape, [&](const Dim& dim) {
    return absl::c_any_of(SymbolsOf(dim),
                          [&](const std::string& symbol) { return lists.contains(symbol); });
  });
}

/// Without regard to operands.
bool IsDeclaredEach(const Graph& g, NodeId id) {
  Op op = g.nodes[id].op;
  if (RoleOf(op) == Role::kConstant || RoleOf(op) == Role::kScatter) {
    const Shape* shape = DeclaredShape(op);
    return shape != nullptr && Mentions(*shape, g.lists);
  }
  const std::string* weights = WeightsIn(op);
  if (weights != nullptr && g.lists.contains(*weights)) return true;
  const Declared declared = DeclaredIn(op);
  return declared.type != nullptr && (*declared.each || Mentions(declared.type->shape, g.lists));
}

absl::Status CheckSizes(const Graph& g) {
  std::set<std::string> symbols, weights;
  for (const Node& node : g.nodes) {
    Op op = node.op;
    if (const Shape* shape = DeclaredShape(op)) {
      for (const Dim& dim : *shape) {
        for (const std::string& symbol : SymbolsOf(dim)) symbols.insert(symbol);
      }
    }
    if (const std::string* by = WeightsIn(op)) weights.insert(*by);
  }
  const auto& [first, of_first] = *g.lists.begin();
  for (const auto& [symbol, sizes] : g.lists) {
    const auto error = [&, name = symbol](const auto&... what) {
      return absl::InvalidArgumentError(absl::StrCat("sizes of ", name, ": ", what...));
    };
    if (!symbols.contains(symbol) && !weights.contains(symbol))
      return error("no declaration mentions it");
    if (sizes.empty() || sizes.size() > kMostTensors)
      return error("want 1 to ", kMostTensors, " tensors, have ", sizes.size());
    if (sizes.size() != of_first.size()) {
      return error("want as many tensors as ", first, " has, ", of_first.size(), ", have ",
                   sizes.size());
    }
    for (size_t t = 0; t < sizes.size(); ++t) {
      if (sizes[t] < 0) return error("want 0 or more, tensor ", t, " has ", sizes[t]);
    }
    int64_t room = kMostWeight;
    for (size_t t = 0; weights.contains(symbol) && t < sizes.size(); ++t) {
      if (sizes[t] > room) return error("want weights of at most 2^52 together");
      room -= sizes[t];
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSharing(const Graph& g) {
  const std::vector<bool> each = EachNodes(g);
  for (NodeId id = 0; id < g.size(); ++id) {
    const auto& inputs = g.nodes[id].inputs;
    if (As<Update>(g, id) && each[inputs[1]] && !each[inputs[0]]) {
      return absl::InvalidArgumentError(absl::StrCat(
          Described(g, id), ": all tensors share ", Described(g, inputs[0]),
          ", and each has a value of its own for it; declare it each, or assign a total"));
    }
    if (As<Total>(g, id) && !each[inputs[0]]) {
      return absl::InvalidArgumentError(absl::StrCat(
          Described(g, id), ": want a value of each tensor, have one that all tensors share"));
    }
  }
  return absl::OkStatus();
}

Pw Combining(ReduceKind kind) {
  if (kind == ReduceKind::kMax) return Pw::kMax;
  return kind == ReduceKind::kMin ? Pw::kMin : Pw::kAdd;
}

/// The scalars as a vector, added up in any order; else neighbours combined, then neighbouring
/// results, and so on.
NodeId Combined(Graph& out, ReduceKind kind, std::vector<NodeId> scalars) {
  if (kind == ReduceKind::kSum && scalars.size() > 2) {
    for (NodeId& scalar : scalars) scalar = out.Add(Reshape{{Dim(1)}}, {scalar});
    while (scalars.size() > 1) {
      std::vector<NodeId> joined;
      for (size_t i = 0; i < scalars.size(); i += kMostJoined) {
        const size_t end = std::min(i + kMostJoined, scalars.size());
        joined.push_back(out.Add(Concat{0}, {scalars.begin() + i, scalars.begin() + end}));
      }
      scalars = std::move(joined);
    }
    return out.Add(Fold{FoldKind::kSum, {0}}, {scalars[0]});
  }
  while (scalars.size() > 1) {
    std::vector<NodeId> halves;
    for (size_t i = 0; i + 1 < scalars.size(); i += 2) {
      halves.push_back(out.Add(Pointwise{Combining(kind)}, {scalars[i], scalars[i + 1]}));
    }
    if (scalars.size() % 2 == 1) halves.push_back(scalars.back());
    scalars = std::move(halves);
  }
  return scalars[0];
}

Share ShareOf(const std::vector<int64_t>& weights, int tensor) {
  const auto of_tensor = weights.begin() + tensor;
  return {.before = std::accumulate(weights.begin(), of_tensor, int64_t{0}),
          .own = *of_tensor,
          .of = std::accumulate(weights.begin(), weights.end(), int64_t{0})};
}

bool HasWeights(const Graph& g) {
  return absl::c_any_of(g.nodes, [&](const Node& node) {
    Op op = node.op;
    const std::string* by = WeightsIn(op);
    return by != nullptr && !by->empty();
  });
}

/// By list of weights: the turns of its tensors.
using Turns = std::map<std::string, std::vector<Turn>>;

Turns TurnsOf(const Graph& g) {
  Turns turns;
  for (const Node& node : g.nodes) {
    Op op = node.op;
    const std::string* by = WeightsIn(op);
    if (by == nullptr || turns.contains(*by)) continue;
    if (const auto list = g.lists.find(*by); list != g.lists.end())
      turns[*by] = Turn::Of(list->second);
  }
  return turns;
}

/// An operation as one tensor has it: its sizes, its share of weights or its turn, its names.
Op OpOfTensor(Op op, const SizeLists& lists, const Turns& turns, int tensor) {
  if (Shape* shape = DeclaredShape(op)) {
    for (Dim& dim : *shape) dim = OfTensor(dim, lists, tensor);
  }
  if (const Declared declared = DeclaredIn(op); declared.type != nullptr) {
    Layout& layout = declared.type->layout;
    if (const auto list = lists.find(layout.by); list != lists.end()) {
      if (layout.owned()) {
        layout.turn = turns.at(layout.by)[tensor];
      } else {
        layout.share = ShareOf(list->second, tensor);
      }
      layout.by.clear();
    }
  }
  if (Cut* to = CutIn(op); to != nullptr && turns.contains(to->by)) {
    to->turn = turns.at(to->by)[tensor];
    to->by.clear();
  }
  return op;
}

Op Renamed(Op op, int tensor) {
  const Declared declared = DeclaredIn(op);
  if (declared.name != nullptr) *declared.name = TensorName(*declared.name, tensor);
  if (declared.each != nullptr) *declared.each = false;
  return op;
}

}  // namespace

Dim OfTensor(const Dim& dim, const SizeLists& lists, int tensor) {
  return WithSizes(dim, [&](const std::string& symbol) -> std::optional<int64_t> {
    const auto list = lists.find(symbol);
    if (list == lists.end()) return std::nullopt;
    return list->second[tensor];
  });
}

int TensorCount(const Graph& g) {
  return g.lists.empty() ? 0 : static_cast<int>(g.lists.begin()->second.size());
}

std::vector<bool> EachNodes(const Graph& g) {
  std::vector<bool> each(g.nodes.size());
  if (g.lists.empty()) return each;
  for (NodeId id = 0; id < g.size(); ++id) {
    const auto& inputs = g.nodes[id].inputs;
    const bool of_each = absl::c_any_of(inputs, [&](NodeId input) { return each[input]; });
    each[id] = IsDeclaredEach(g, id) || (of_each && !As<Total>(g, id));
  }
  return each;
}

absl::Status CheckLists(const Graph& g) {
  if (g.lists.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckSizes(g));
  RETURN_IF_ERROR(CheckSharing(g));
  for (int tensor : KindsOf(g).first) {
    RETURN_IF_ERROR(WithContext(TypedGraph::Of(ProgramOf(g, tensor)).status(),
                                absl::StrCat("tensor ", tensor)));
  }
  return absl::OkStatus();
}

Graph ProgramOf(const Graph& g, int tensor) {
  Graph program{g.name, g.nodes};
  const Turns turns = TurnsOf(g);
  for (Node& node : program.nodes) node.op = OpOfTensor(std::move(node.op), g.lists, turns, tensor);
  return program;
}

TensorKinds KindsOf(const Graph& g) {
  TensorKinds kinds;
  const bool weighted = HasWeights(g);  // each tensor has another share
  std::map<std::vector<int64_t>, int> known;
  for (int tensor = 0; tensor < TensorCount(g); ++tensor) {
    std::vector<int64_t> sizes;
    for (const auto& [symbol, list] : g.lists) sizes.push_back(list[tensor]);
    if (weighted) sizes.push_back(tensor);
    const auto [kind, is_new] =
        known.try_emplace(std::move(sizes), static_cast<int>(kinds.first.size()));
    if (is_new) {
      kinds.first.push_back(tensor);
      kinds.count.push_back(0);
    }
    kinds.of.push_back(kind->second);
    ++kinds.count[kind->second];
  }
  return kinds;
}

std::string TensorName(absl::string_view name, int tensor) {
  return absl::StrCat(name, ".", tensor);
}

Graph Expand(const Graph& g) {
  if (g.lists.empty()) return g;
  const int tensors = TensorCount(g);
  const std::vector<bool> each = EachNodes(g);
  const Turns turns = TurnsOf(g);
  Graph out{g.name, {}};
  std::vector<std::vector<NodeId>> copies(g.nodes.size());  // by node: one, or one per tensor
  for (NodeId id = 0; id < g.size(); ++id) {
    if (const auto* total = As<Total>(g, id)) {
      copies[id] = {Combined(out, total->kind, copies[g.nodes[id].inputs[0]])};
      continue;
    }
    for (int tensor = 0; tensor < (each[id] ? tensors : 1); ++tensor) {
      std::vector<NodeId> inputs;
      for (NodeId input : g.nodes[id].inputs)
        inputs.push_back(copies[input][each[input] ? tensor : 0]);
      Op op = each[id] ? Renamed(OpOfTensor(g.nodes[id].op, g.lists, turns, tensor), tensor)
                       : g.nodes[id].op;
      copies[id].push_back(out.Add(std::move(op), std::move(inputs)));
    }
  }
  return out;
}

Graph TotalBeforeRanks(const Graph& g) {
  return Rewrite(g,
                 [&](Graph& out, NodeId id, std::vector<NodeId> inputs) {
                   const auto* total = As<Total>(g, id);
                   const auto* all_reduce =
                       total == nullptr ? nullptr : As<AllReduce>(out, inputs[0]);
                   if (all_reduce == nullptr || all_reduce->kind != total->kind)
                     return out.Add(g.nodes[id].op, std::move(inputs));
                   const NodeId contributed = out.Add(*total, {out.nodes[inputs[0]].inputs[0]});
                   return out.Add(AllReduce{total->kind}, {contributed});
                 })
      .graph;
}

}  // namespace coconet
