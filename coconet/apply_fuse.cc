#include <algorithm>
#include <optional>

#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "coconet/infer.h"
#include "coconet/kernel_phases.h"
#include "coconet/rewrites.h"
#include "coconet/steps.h"

namespace coconet {
namespace {

using Kernels = std::vector<std::vector<NodeId>>;

/// Whether one launch can hold the nodes of a fusion: one question a function.
class Candidate {
 public:
  Candidate(const Graph& g, std::vector<TensorType> types, const Fuse& fuse)
      : g_(g), types_(std::move(types)), fuse_(fuse), values_(AssignedValues(g)), inside_(g.nodes.size()) {
    for (NodeId id : fuse.nodes) inside_[id] = true;
  }

  absl::Status Check() const {
    for (NodeId id : fuse_.nodes) RETURN_IF_ERROR(CheckMember(id));
    RETURN_IF_ERROR(CheckIterationSpace());
    RETURN_IF_ERROR(CheckRounds());
    for (NodeId id : fuse_.nodes) {
      RETURN_IF_ERROR(CheckReductionOperand(id));
      RETURN_IF_ERROR(CheckGatherOperand(id));
    }
    RETURN_IF_ERROR(CheckUpdatesOfMembers());
    return CheckPhases();
  }

 private:
  template <class... Parts>
  absl::Status Refuse(const Parts&... parts) const {
    return Refused(fuse_, parts...);
  }
  std::string Text(NodeId id) const { return NodeText(g_, id); }
  bool IsReduction(NodeId id) const { return As<AllReduce>(g_, id) || As<ReduceScatter>(g_, id); }

  absl::Status CheckMember(NodeId id) const {
    const bool is_declared = g_.nodes[id].inputs.empty();
    const bool is_scalar = !As<Output>(g_, id) && types_[id].shape.empty();
    if (is_declared || (is_scalar && (As<Pointwise>(g_, id) || As<Cast>(g_, id)))) {
      return Refuse(Text(id), " belongs to no kernel: every kernel loads or recomputes it where it needs it");
    }
    if (types_[id].shape.empty()) return Refuse(Text(id), " is a scalar, want tensors only");
    return absl::OkStatus();
  }

  absl::Status CheckIterationSpace() const {
    const NodeId first = fuse_.nodes[0];
    std::optional<NodeId> sliced;
    for (NodeId id : fuse_.nodes) {
      if (types_[id].shape != types_[first].shape) {
        return Refuse("want one shape, have ", Text(first), " of ", coconet::Text(types_[first].shape), " and ",
                      Text(id), " of ", coconet::Text(types_[id].shape));
      }
      if (!types_[id].layout.sliced()) continue;
      if (sliced.has_value() && types_[id].layout != types_[*sliced].layout) {
        return Refuse("want one sliced dimension, have ", Text(*sliced), " ", coconet::Text(types_[*sliced].layout),
                      " and ", Text(id), " ", coconet::Text(types_[id].layout));
      }
      sliced = id;
    }
    return absl::OkStatus();
  }

  /// A kernel communicates in one way: each rank reduces everything for itself, or each rank its slice.
  absl::Status CheckRounds() const {
    std::optional<NodeId> all_reduce, on_slices;
    for (NodeId id : fuse_.nodes) {
      if (As<AllReduce>(g_, id)) all_reduce = id;
      if (types_[id].layout.sliced() || As<AllGather>(g_, id)) on_slices = id;
    }
    if (!all_reduce.has_value() || !on_slices.has_value()) return absl::OkStatus();
    return Refuse(Text(*all_reduce), " reduces whole tensors, ", Text(*on_slices),
                  " works on slices: want one of the two in a kernel");
  }

  absl::Status CheckReductionOperand(NodeId id) const {
    if (!IsReduction(id)) return absl::OkStatus();
    const NodeId operand = g_.nodes[id].inputs[0];
    if (inside_[operand] || inside_[values_[operand]]) {
      return Refuse(Text(id), " takes ", Text(operand),
                    " of the same kernel: other ranks may read it only when that kernel has ended");
    }
    for (NodeId member : fuse_.nodes) {
      if (As<Update>(g_, member) && g_.nodes[member].inputs[0] == values_[operand]) {
        return Refuse(Text(member), " overwrites what other ranks read for ", Text(id));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckGatherOperand(NodeId id) const {
    if (!As<AllGather>(g_, id) || inside_[g_.nodes[id].inputs[0]]) return absl::OkStatus();
    return Refuse(Text(id), " gathers ", Text(g_.nodes[id].inputs[0]), ", which is not in the kernel");
  }

  absl::Status CheckUpdatesOfMembers() const {
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (!As<Update>(g_, id) || inside_[id] || !inside_[g_.nodes[id].inputs[1]]) continue;
      return Refuse(Text(id), " stores ", Text(g_.nodes[id].inputs[1]), " of the kernel, and belongs into it");
    }
    return absl::OkStatus();
  }

  absl::Status CheckPhases() const {
    const KernelPhases phases = PhasesOf(g_, types_, fuse_.nodes);
    for (NodeId id : phases.on_slices) {
      if (As<AllGather>(g_, id)) {
        return Refuse(Text(id), " feeds computation on slices of the same kernel: that takes a second round");
      }
    }
    const std::vector<NodeId> read_first = StatesRead(g_, phases.on_slices);
    const std::vector<NodeId> read_last = StatesRead(g_, phases.on_whole);
    for (NodeId update : fuse_.nodes) {
      if (!As<Update>(g_, update)) continue;
      const NodeId state = g_.nodes[update].inputs[0];
      const bool is_pushed = inside_[values_[update]] && As<AllGather>(g_, values_[update]);
      if (is_pushed && std::binary_search(read_last.begin(), read_last.end(), state)) {
        return Refuse(Text(update), " is stored as slices arrive, but ", ValueText(g_, state),
                      " before the step is still read for whole tensors");
      }
      const bool is_whole = !is_pushed && !types_[update].layout.sliced();
      if (is_whole && std::binary_search(read_first.begin(), read_first.end(), state)) {
        return Refuse(Text(update), " stores the whole tensor, but ", ValueText(g_, state),
                      " before the step is read on slices");
      }
    }
    return absl::OkStatus();
  }

  const Graph& g_;
  const std::vector<TensorType> types_;
  const Fuse& fuse_;
  const std::vector<NodeId> values_;
  std::vector<bool> inside_;
};

/// The kernels with the fusion in place of those that it contains.
absl::StatusOr<Kernels> Merge(const Kernels& kernels, const Fuse& fuse) {
  Kernels merged;
  for (const std::vector<NodeId>& kernel : kernels) {
    std::vector<NodeId> common;
    std::set_intersection(kernel.begin(), kernel.end(), fuse.nodes.begin(), fuse.nodes.end(),
                          std::back_inserter(common));
    if (kernel == fuse.nodes) return Refused(fuse, "these nodes are a kernel already");
    if (common.empty()) merged.push_back(kernel);
    if (common.empty() || common == kernel) continue;
    return Refused(fuse, "%", common[0], " is in the kernel {%", absl::StrJoin(kernel, " %"), "}: name all of it");
  }
  merged.push_back(fuse.nodes);
  std::sort(merged.begin(), merged.end());
  return merged;
}

absl::Status CheckAcyclic(const Graph& g, const Kernels& kernels, const Fuse& fuse) {
  const Steps steps = FindSteps(g, kernels);
  const std::vector<int> within = StepsWithin(steps, steps.of[fuse.nodes[0]]);
  if (within.empty()) return absl::OkStatus();
  return Refused(fuse, NodeText(g, steps.nodes[within[0]][0]),
                 " is not in the kernel, but must run after some of it and before the rest");
}

}  // namespace

absl::StatusOr<Kernels> ApplyFuse(const Graph& g, const Kernels& kernels, const Fuse& fuse) {
  if (fuse.nodes.size() < 2) return Refused(fuse, "want two nodes or more");
  if (std::adjacent_find(fuse.nodes.begin(), fuse.nodes.end(), std::greater_equal<NodeId>()) != fuse.nodes.end()) {
    return Refused(fuse, "want nodes in ascending order, each once");
  }
  ASSIGN_OR_RETURN(Kernels merged, Merge(kernels, fuse));
  ASSIGN_OR_RETURN(std::vector<TensorType> types, InferTypes(g));
  RETURN_IF_ERROR(Candidate(g, std::move(types), fuse).Check());
  RETURN_IF_ERROR(CheckAcyclic(g, merged, fuse));
  return merged;
}

}  // namespace coconet
