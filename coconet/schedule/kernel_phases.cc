#include "coconet/schedule/kernel_phases.h"

#include <algorithm>
#include <map>
#include <set>

#include "coconet/schedule/steps.h"

namespace coconet {
namespace {

constexpr int kNever = 1 << 20;

class Phases {
 public:
  Phases(const Graph& g, const std::vector<TensorType>& types, const std::vector<NodeId>& kernel)
      : g_(g),
        types_(types),
        kernel_(kernel),
        values_(AssignedValues(g)),
        inside_(g.nodes.size()),
        has_elements_(!SpaceOf(g, types, kernel).shape.empty()) {
    for (NodeId id : kernel) inside_[id] = true;
    result_.stored_in.assign(g.nodes.size(), -1);
    FindKept();
    for (NodeId id : kernel) Place(id);
    Number();
    for (size_t p = 0; p < result_.phases.size(); ++p) Evaluate(static_cast<int>(p));
  }

  KernelPhases Get() && { return std::move(result_); }

 private:
  /// In a kernel of scalars only they are its elements.
  bool IsScalar(NodeId id) const { return has_elements_ && types_[id].shape.empty(); }
  /// A computation on scalars, which belongs to no step.
  bool IsRecomputed(NodeId id) const {
    return types_[id].shape.empty() && coconet::IsComputation(g_.nodes[id].op);
  }

  /// Values that other steps take, and values that an update here keeps in its state.
  void FindKept() {
    std::vector<NodeId> stack;
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (As<Update>(g_, id)) {
        if (inside_[id]) kept_by_update_.insert(values_[id]);
        if (!inside_[id]) stack.push_back(g_.nodes[id].inputs[1]);
      } else if (!inside_[id] && !IsRecomputed(id)) {
        stack.insert(stack.end(), g_.nodes[id].inputs.begin(), g_.nodes[id].inputs.end());
      }
    }
    while (!stack.empty()) {
      const NodeId value = values_[stack.back()];
      stack.pop_back();
      if (!taken_outside_.insert(value).second || inside_[value] || !IsRecomputed(value)) continue;
      stack.insert(stack.end(), g_.nodes[value].inputs.begin(), g_.nodes[value].inputs.end());
    }
  }

  bool IsStore(NodeId id) const {
    if (As<Send>(g_, id) || IsSent(id)) return false;
    if (As<Output>(g_, id)) return true;
    if (As<Update>(g_, id)) return !(inside_[values_[id]] && As<AllGather>(g_, values_[id]));
    return taken_outside_.contains(id) && !kept_by_update_.contains(id);
  }

  /// An update or output of what a send of the kernel brings.
  bool IsSent(NodeId id) const {
    if (!As<Update>(g_, id) && !As<Output>(g_, id)) return false;
    const NodeId value = values_[g_.nodes[id].inputs.back()];
    return inside_[value] && As<Send>(g_, value);
  }

  bool OnSlices(NodeId id) const { return types_[id].layout.sliced(); }

  /// Phases of a domain that must have ended before a value can be computed there.
  int RoundOf(NodeId id, bool on_slices) {
    id = values_[id];
    const auto [at, is_new] = rounds_.try_emplace({id, on_slices}, kNever);
    if (!is_new) return at->second;
    int round = 0;
    const auto& inputs = g_.nodes[id].inputs;
    if (inside_[id] && As<AllGather>(g_, id)) {
      round = on_slices ? kNever : 0;
    } else if (inside_[id] && !IsScalar(id) &&
               (As<ReduceScatter>(g_, id) || As<AllReduce>(g_, id))) {
      round = 0;
    } else if (inside_[id] && FoldsAll(g_, types_, id)) {
      const bool folds_slices = OnSlices(inputs[0]);
      round = folds_slices == on_slices ? RoundOf(inputs[0], on_slices) + 1
              : on_slices               ? kNever
                                        : 0;
    } else if (inside_[id] || IsRecomputed(id)) {
      for (NodeId input : inputs) round = std::max(round, RoundOf(input, on_slices));
    }
    round = std::min(round, kNever);
    rounds_[{id, on_slices}] = round;
    return round;
  }

  KernelPhase& PhaseAt(NodeId id, NodeId value, bool on_slices) {
    const int round = RoundOf(value, on_slices);
    if (round >= kNever) result_.unready = id;
    KernelPhase& phase = by_order_[{!on_slices, round}];
    phase.on_slices = on_slices;
    phase.round = round;
    return phase;
  }

  void Place(NodeId id) {
    const NodeId value = As<Update>(g_, id) || As<Output>(g_, id) ? g_.nodes[id].inputs.back() : id;
    if (IsScalar(value)) {
      if (FoldsAll(g_, types_, id)) {
        const NodeId operand = g_.nodes[id].inputs[0];
        PhaseAt(id, operand, OnSlices(operand)).folds.push_back(id);
      }
      if (IsStore(id)) result_.scalars.push_back(id);
    } else if (As<AllGather>(g_, id)) {
      PhaseAt(id, g_.nodes[id].inputs[0], /*on_slices=*/true).gathers.push_back(id);
    } else if (As<Send>(g_, id)) {
      PhaseAt(id, g_.nodes[id].inputs[0], OnSlices(id)).sends.push_back(id);
    } else if (IsStore(id)) {
      PhaseAt(id, value, OnSlices(id)).stores.push_back(id);
    }
  }

  void Number() {
    for (auto& [order, phase] : by_order_) {
      const int number = static_cast<int>(result_.phases.size());
      for (NodeId id : phase.stores) {
        if (!As<Output>(g_, id)) result_.stored_in[values_[id]] = number;
      }
      result_.phases.push_back(std::move(phase));
    }
  }

  /// Adds what must be evaluated in a phase, up to what it loads.
  void Evaluate(int number) {
    KernelPhase& phase = result_.phases[number];
    std::set<NodeId> evaluated;
    std::vector<NodeId> stack = phase.stores;
    for (NodeId id : phase.gathers) stack.push_back(g_.nodes[id].inputs[0]);
    for (NodeId id : phase.sends) stack.push_back(g_.nodes[id].inputs[0]);
    for (NodeId id : phase.folds) stack.push_back(g_.nodes[id].inputs[0]);
    while (!stack.empty()) {
      const NodeId node = stack.back();
      stack.pop_back();
      const int stored = result_.stored_in[values_[node]];
      const bool is_loaded = !inside_[node] || IsScalar(node) || (stored >= 0 && stored < number);
      if (is_loaded || !evaluated.insert(node).second) continue;
      if (As<ReduceScatter>(g_, node) || As<AllReduce>(g_, node) || As<AllGather>(g_, node))
        continue;
      const auto& inputs = g_.nodes[node].inputs;
      stack.insert(stack.end(), inputs.begin() + (As<Update>(g_, node) ? 1 : 0), inputs.end());
    }
    phase.evaluated.assign(evaluated.begin(), evaluated.end());
  }

  const Graph& g_;
  const std::vector<TensorType>& types_;
  const std::vector<NodeId>& kernel_;
  const std::vector<NodeId> values_;
  std::vector<bool> inside_;
  const bool has_elements_;
  std::set<NodeId> taken_outside_, kept_by_update_;
  std::map<std::pair<NodeId, bool>, int> rounds_;
  std::map<std::pair<bool, int>, KernelPhase> by_order_;
  KernelPhases result_;
};

}  // namespace

Shape IterationSpace::rows() const {
  Shape result = shape;
  for (size_t d = shape.size() - row_dims; d < shape.size(); ++d) result[d] = 1;
  return result;
}

bool FoldsAll(const Graph& g, const std::vector<TensorType>& types, NodeId id) {
  return As<Fold>(g, id) != nullptr && types[id].shape.empty();
}

NodeId FoldBelow(const Graph& g, const std::vector<TensorType>& types, NodeId id) {
  const auto* all_reduce = As<AllReduce>(g, id);
  if (all_reduce == nullptr) return -1;
  const auto value = [&](NodeId node) {
    while (As<Update>(g, node)) node = g.nodes[node].inputs[1];
    return node;
  };
  NodeId operand = value(g.nodes[id].inputs[0]);
  if (const auto* total = As<Total>(g, operand);
      total != nullptr && total->kind == all_reduce->kind) {
    operand = value(g.nodes[operand].inputs[0]);
  }
  return FoldsAll(g, types, operand) ? operand : -1;
}

bool FoldsLastDims(const Graph& g, const std::vector<TensorType>& types, NodeId id) {
  const auto* fold = As<Fold>(g, id);
  return fold != nullptr && !fold->dims.empty() && !types[id].shape.empty() &&
         fold->dims[0] + fold->dims.size() == types[id].shape.size();
}

bool FoldsRows(const Graph& g, const std::vector<TensorType>& types, NodeId id) {
  if (!FoldsLastDims(g, types, id)) return false;
  const TensorType& operand = types[g.nodes[id].inputs[0]];
  for (int dim : As<Fold>(g, id)->dims) {
    const bool is_empty = operand.shape[dim].bound() && operand.shape[dim].size == 0;
    if (is_empty || (operand.layout.sliced() && operand.layout.dim == dim)) return false;
  }
  return true;
}

IterationSpace SpaceOf(const Graph& g, const std::vector<TensorType>& types,
                       const std::vector<NodeId>& kernel) {
  IterationSpace space;
  for (NodeId id : kernel) {
    if (As<Fold>(g, id) != nullptr) {
      space.shape = types[g.nodes[id].inputs[0]].shape;
      if (FoldsRows(g, types, id)) space.row_dims = static_cast<int>(As<Fold>(g, id)->dims.size());
    } else if (types[id].shape.size() > space.shape.size() ||
               (types[id].shape.size() == space.shape.size() && IsBound(types[id].shape) &&
                IsBound(space.shape) && NumElements(types[id].shape) > NumElements(space.shape))) {
      space.shape = types[id].shape;
    }
    if (space.row_dims > 0) break;  // rows are folded in the whole space only
  }
  return space;
}

KernelPhases PhasesOf(const Graph& g, const std::vector<TensorType>& types,
                      const std::vector<NodeId>& kernel) {
  return Phases(g, types, kernel).Get();
}

std::vector<NodeId> StatesRead(const Graph& g, const std::vector<NodeId>& nodes) {
  std::set<NodeId> states;
  for (NodeId id : nodes) {
    const auto& inputs = g.nodes[id].inputs;
    for (size_t i = As<Update>(g, id) ? 1 : 0; i < inputs.size(); ++i) {
      if (As<State>(g, inputs[i])) states.insert(inputs[i]);
    }
  }
  return {states.begin(), states.end()};
}

}  // namespace coconet
