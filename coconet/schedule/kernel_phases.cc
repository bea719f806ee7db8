#include "coconet/schedule/kernel_phases.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/types/span.h"
#include "coconet/schedule/prologue.h"

namespace coconet {
namespace {

constexpr int kNever = 1 << 20;

/// The elements that a phase runs over, in the order of phases.
enum class Domain : uint8_t { kSlices, kArriving, kWhole };

class Phases {
 public:
  Phases(const TypedGraph& program, const std::vector<NodeId>& kernel)
      : p_(program),
        g_(program.graph()),
        kernel_(WithoutPrologue(program, kernel)),
        has_elements_(!SpaceOf(program, kernel).shape.empty()) {
    for (NodeId id : kernel_) {
      if (As<Update>(g_, id)) kept_by_update_.insert(p_.value(id));
      if (IsExchanged(program, kernel_, id)) arriving_ = p_.type(id).layout;
    }
    for (NodeId id : kernel_) Place(id);
    Number();
    for (size_t p = 0; p < result_.phases.size(); ++p) Evaluate(static_cast<int>(p));
  }

  KernelPhases Get() && { return std::move(result_); }

 private:
  using Key = std::pair<NodeId, Domain>;  // a value, where it is needed

  bool Inside(NodeId id) const { return std::binary_search(kernel_.begin(), kernel_.end(), id); }
  /// In a kernel of scalars only they are its elements.
  bool IsScalar(NodeId id) const { return has_elements_ && p_.type(id).shape.empty(); }

  /// Whether another launch takes the value of a member.
  bool IsTakenOutside(NodeId id) const {
    const TypedGraph::Takers& takers = p_.takers(id);
    if (takers.first < 0) return false;
    if (!Inside(takers.first) || !Inside(takers.last)) return true;
    std::set<NodeId> seen = {id};
    for (std::vector<NodeId> stack = {id}; !stack.empty();) {
      const NodeId value = stack.back();
      stack.pop_back();
      for (NodeId user : p_.users()[value]) {
        const bool updates = As<Update>(g_, user) != nullptr;
        if (updates && p_.inputs(user)[1] != value) continue;
        if (!p_.IsRecomputed(user) && !Inside(user)) return true;
        const bool passes_on = updates || (p_.IsRecomputed(user) && !Inside(user));
        if (passes_on && seen.insert(user).second) stack.push_back(user);
      }
    }
    return false;
  }

  bool IsStore(NodeId id) const {
    if (As<Send>(g_, id) || Exchanges(id) || IsSent(id)) return false;
    if (As<Output>(g_, id)) return true;
    if (As<Update>(g_, id)) return !(Inside(p_.value(id)) && As<AllGather>(g_, p_.value(id)));
    return !kept_by_update_.contains(id) && IsTakenOutside(id);
  }

  /// An update or output of what a send of the kernel brings, or what it exchanges.
  bool IsSent(NodeId id) const {
    if (!As<Update>(g_, id) && !As<Output>(g_, id)) return false;
    const NodeId value = p_.value(p_.inputs(id).back());
    return Inside(value) && (As<Send>(g_, value) || Exchanges(value));
  }

  bool Exchanges(NodeId id) const { return As<AllToAll>(g_, id) && IsExchanged(p_, kernel_, id); }

  Domain DomainOf(NodeId id) const {
    const Layout& layout = p_.type(id).layout;
    if (!layout.sliced()) return Domain::kWhole;
    return layout == arriving_ ? Domain::kArriving : Domain::kSlices;
  }

  /// The operands whose rounds decide that of a value.
  absl::Span<const NodeId> DecidingOperands(const Key& key) const {
    const auto& [id, domain] = key;
    const bool inside = Inside(id);
    if (!inside && !p_.IsRecomputed(id)) return {};
    if (inside && (As<AllGather>(g_, id) || As<AllToAll>(g_, id))) return {};
    if (inside && !IsScalar(id) && (As<ReduceScatter>(g_, id) || As<AllReduce>(g_, id))) return {};
    if (inside && FoldsAll(p_, id) && DomainOf(p_.inputs(id)[0]) != domain) return {};
    return p_.inputs(id);
  }

  /// From the rounds of the deciding operands.
  int RoundFrom(const Key& key) const {
    const auto& [id, domain] = key;
    int round = 0;
    for (NodeId operand : DecidingOperands(key))
      round = std::max(round, rounds_.at({p_.value(operand), domain}));
    if (!Inside(id)) return round;
    if (FoldsAll(p_, id) && DomainOf(p_.inputs(id)[0]) == domain) return round + 1;
    const bool too_early = domain == Domain::kSlices && Exchanges(id);
    const bool of_whole = As<AllGather>(g_, id) || FoldsAll(p_, id);
    return too_early || (domain != Domain::kWhole && of_whole) ? kNever : round;
  }

  /// Phases of a domain that must have ended before a value can be computed there.
  int RoundOf(NodeId id, Domain domain) {
    std::vector<Key> stack = {{p_.value(id), domain}};
    while (!stack.empty()) {
      const Key key = stack.back();
      const size_t before = stack.size();
      // What comes before all members takes none of them.
      if (key.first < kernel_.front()) rounds_[key] = 0;
      if (!rounds_.contains(key)) {
        for (NodeId operand : DecidingOperands(key)) {
          const Key needed{p_.value(operand), domain};
          if (!rounds_.contains(needed)) stack.push_back(needed);
        }
        if (stack.size() > before) continue;
        rounds_[key] = std::min(RoundFrom(key), kNever);
      }
      stack.pop_back();
    }
    return rounds_.at({p_.value(id), domain});
  }

  KernelPhase& PhaseAt(NodeId id, NodeId value, Domain domain) {
    const int round = RoundOf(value, domain);
    if (round >= kNever) result_.unready = id;
    KernelPhase& phase = by_order_[{domain, round}];
    phase.on_slices = domain != Domain::kWhole;
    phase.arriving = domain == Domain::kArriving;
    phase.round = round;
    return phase;
  }

  void Place(NodeId id) {
    const NodeId value = As<Update>(g_, id) || As<Output>(g_, id) ? g_.nodes[id].inputs.back() : id;
    if (IsScalar(value)) {
      if (FoldsAll(p_, id)) {
        const NodeId operand = g_.nodes[id].inputs[0];
        PhaseAt(id, operand, DomainOf(operand)).folds.push_back(id);
      }
      if (IsStore(id)) result_.scalars.push_back(id);
    } else if (As<AllGather>(g_, id)) {
      PhaseAt(id, g_.nodes[id].inputs[0], DomainOf(g_.nodes[id].inputs[0])).gathers.push_back(id);
    } else if (Exchanges(id)) {
      PhaseAt(id, g_.nodes[id].inputs[0], Domain::kSlices).exchanges.push_back(id);
    } else if (As<Send>(g_, id)) {
      PhaseAt(id, g_.nodes[id].inputs[0], DomainOf(id)).sends.push_back(id);
    } else if (IsStore(id)) {
      PhaseAt(id, value, DomainOf(id)).stores.push_back(id);
    }
  }

  void Number() {
    for (auto& [order, phase] : by_order_) {
      const int number = static_cast<int>(result_.phases.size());
      for (NodeId id : phase.stores) {
        if (!As<Output>(g_, id)) result_.stored_in[p_.value(id)] = number;
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
    for (NodeId id : phase.exchanges) stack.push_back(g_.nodes[id].inputs[0]);
    for (NodeId id : phase.sends) stack.push_back(g_.nodes[id].inputs[0]);
    for (NodeId id : phase.folds) stack.push_back(g_.nodes[id].inputs[0]);
    while (!stack.empty()) {
      const NodeId node = stack.back();
      stack.pop_back();
      const int stored = result_.StoredIn(p_.value(node));
      const bool is_loaded = !Inside(node) || IsScalar(node) || (stored >= 0 && stored < number);
      if (is_loaded || !evaluated.insert(node).second) continue;
      if (As<ReduceScatter>(g_, node) || As<AllReduce>(g_, node) || As<AllGather>(g_, node) ||
          As<AllToAll>(g_, node))
        continue;
      const auto& inputs = g_.nodes[node].inputs;
      stack.insert(stack.end(), inputs.begin() + (As<Update>(g_, node) ? 1 : 0), inputs.end());
    }
    phase.evaluated.assign(evaluated.begin(), evaluated.end());
  }

  const TypedGraph& p_;
  const Graph& g_;
  const std::vector<NodeId> kernel_;
  const bool has_elements_;
  std::set<NodeId> kept_by_update_;
  std::map<Key, int> rounds_;
  std::optional<Layout> arriving_;  // of what the kernel exchanges
  std::map<std::pair<Domain, int>, KernelPhase> by_order_;
  KernelPhases result_;
};

}  // namespace

Shape IterationSpace::rows() const {
  Shape result = shape;
  for (size_t d = shape.size() - row_dims; d < shape.size(); ++d) result[d] = 1;
  return result;
}

bool IsExchanged(const TypedGraph& program, const std::vector<NodeId>& kernel, NodeId id) {
  if (As<AllToAll>(program.graph(), id) == nullptr) return false;
  const NodeId operand = program.inputs(id)[0];
  if (IsOfPrologue(program, kernel, program.value(operand))) return false;
  return std::binary_search(kernel.begin(), kernel.end(), operand) ||
         std::binary_search(kernel.begin(), kernel.end(), program.value(operand));
}

bool FoldsAll(const TypedGraph& program, NodeId id) {
  return As<Fold>(program.graph(), id) != nullptr && program.type(id).shape.empty();
}

NodeId FoldBelow(const TypedGraph& program, NodeId id) {
  const Graph& g = program.graph();
  const auto* all_reduce = As<AllReduce>(g, id);
  if (all_reduce == nullptr) return -1;
  NodeId operand = program.value(program.inputs(id)[0]);
  if (const auto* total = As<Total>(g, operand);
      total != nullptr && total->kind == all_reduce->kind) {
    operand = program.value(program.inputs(operand)[0]);
  }
  return FoldsAll(program, operand) ? operand : -1;
}

bool FoldsLastDims(const TypedGraph& program, NodeId id) {
  const auto* fold = As<Fold>(program.graph(), id);
  const Shape& shape = program.type(id).shape;
  return fold != nullptr && !fold->dims.empty() && !shape.empty() &&
         fold->dims[0] + fold->dims.size() == shape.size();
}

bool FoldsRows(const TypedGraph& program, NodeId id) {
  if (!FoldsLastDims(program, id)) return false;
  const TensorType& operand = program.type(program.inputs(id)[0]);
  for (int dim : As<Fold>(program.graph(), id)->dims) {
    const bool is_empty = operand.shape[dim].bound() && operand.shape[dim].size == 0;
    if (is_empty || (operand.layout.sliced() && operand.layout.dim == dim)) return false;
  }
  return true;
}

IterationSpace SpaceOf(const TypedGraph& program, const std::vector<NodeId>& kernel) {
  const Graph& g = program.graph();
  const std::vector<TensorType>& types = program.types();
  IterationSpace space;
  for (NodeId id : WithoutPrologue(program, kernel)) {
    if (As<Fold>(g, id) != nullptr) {
      space.shape = types[g.nodes[id].inputs[0]].shape;
      if (FoldsRows(program, id)) space.row_dims = static_cast<int>(As<Fold>(g, id)->dims.size());
    } else if (types[id].shape.size() > space.shape.size() ||
               (types[id].shape.size() == space.shape.size() && IsBound(types[id].shape) &&
                IsBound(space.shape) && NumElements(types[id].shape) > NumElements(space.shape))) {
      space.shape = types[id].shape;
    }
    if (space.row_dims > 0) break;  // rows are folded in the whole space only
  }
  return space;
}

KernelPhases PhasesOf(const TypedGraph& program, const std::vector<NodeId>& kernel) {
  return Phases(program, kernel).Get();
}

bool IsWidening(const TypedGraph& program, NodeId id) {
  if (As<Cast>(program.graph(), id) == nullptr) return false;
  const DType to = program.type(id).dtype, from = program.type(program.inputs(id)[0]).dtype;
  if (to == DType::kF32) return IsNarrowFloat(from);
  return to == DType::kI32 && IsInteger(from) && SizeOf(from) < SizeOf(to);
}

NodeId CrossingValue(const TypedGraph& program, NodeId collective,
                     const std::vector<NodeId>& kernel) {
  const NodeId operand = program.value(program.inputs(collective)[0]);
  if (As<AllToAll>(program.graph(), collective)) return operand;
  const bool is_inside = std::binary_search(kernel.begin(), kernel.end(), operand);
  if (!is_inside || !IsWidening(program, operand)) return operand;
  return program.value(program.inputs(operand)[0]);
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
