#include "coconet/kernel_phases.h"

#include <set>

#include "coconet/steps.h"

namespace coconet {
namespace {

class Phases {
 public:
  Phases(const Graph& g, const std::vector<TensorType>& types, const std::vector<NodeId>& kernel)
      : g_(g), kernel_(kernel), values_(AssignedValues(g)), inside_(g.nodes.size()) {
    for (NodeId id : kernel) inside_[id] = true;
    FindKept();
    std::set<NodeId> on_slices, on_whole;
    for (NodeId id : kernel) {
      if (As<AllGather>(g, id)) {
        phases_.gathers.push_back(id);
        Evaluate(g.nodes[id].inputs[0], &on_slices);
      } else if (IsStore(id)) {
        const bool sliced = types[id].layout.sliced();
        (sliced ? phases_.slice_stores : phases_.whole_stores).push_back(id);
        Evaluate(id, sliced ? &on_slices : &on_whole);
      }
    }
    phases_.on_slices.assign(on_slices.begin(), on_slices.end());
    phases_.on_whole.assign(on_whole.begin(), on_whole.end());
  }

  KernelPhases Get() && { return std::move(phases_); }

 private:
  /// Values that other steps take, and values that an update here keeps in its state.
  void FindKept() {
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (As<Update>(g_, id)) {
        if (inside_[id]) kept_by_update_.insert(values_[id]);
        if (!inside_[id]) taken_outside_.insert(values_[id]);
      } else if (!inside_[id]) {
        for (NodeId operand : g_.nodes[id].inputs) taken_outside_.insert(values_[operand]);
      }
    }
  }

  bool IsStore(NodeId id) const {
    if (As<Output>(g_, id)) return true;
    if (As<Update>(g_, id)) return !(inside_[values_[id]] && As<AllGather>(g_, values_[id]));
    return taken_outside_.contains(id) && !kept_by_update_.contains(id);
  }

  /// Adds what must be evaluated for the value of `id`, up to what the phase loads.
  void Evaluate(NodeId id, std::set<NodeId>* evaluated) const {
    std::vector<NodeId> stack = {id};
    while (!stack.empty()) {
      const NodeId node = stack.back();
      stack.pop_back();
      if (!inside_[node] || !evaluated->insert(node).second) continue;
      const bool is_load = As<ReduceScatter>(g_, node) || As<AllReduce>(g_, node) || As<AllGather>(g_, node);
      if (is_load) continue;
      const auto& inputs = g_.nodes[node].inputs;
      stack.insert(stack.end(), inputs.begin() + (As<Update>(g_, node) ? 1 : 0), inputs.end());
    }
  }

  const Graph& g_;
  const std::vector<NodeId>& kernel_;
  const std::vector<NodeId> values_;
  std::vector<bool> inside_;
  std::set<NodeId> taken_outside_, kept_by_update_;
  KernelPhases phases_;
};

}  // namespace

KernelPhases PhasesOf(const Graph& g, const std::vector<TensorType>& types, const std::vector<NodeId>& kernel) {
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
