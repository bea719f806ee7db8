#include "coconet/schedule/describe.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "coconet/schedule/kernel_phases.h"

namespace coconet {
namespace {

enum class Part : uint8_t {
  kReduceScatter,
  kAllReduce,
  kCompute,
  kFold,
  kFoldSum,
  kComputeAfterFold,
  kAllGather,
  kComputeAfterGather,
  kSend,
  kOther
};

bool IsReduction(const Graph& g, NodeId id) {
  return As<AllReduce>(g, id) || As<ReduceScatter>(g, id);
}

/// The collective whose result an update or output stores as it is; -1 for none.
NodeId StoredCollective(const Graph& g, const std::vector<NodeId>& values, NodeId id) {
  if (!As<Update>(g, id) && !As<Output>(g, id)) return -1;
  const NodeId value = values[g.nodes[id].inputs.back()];
  return Communicates(g, value) ? value : -1;
}

/// A schedule in words.
class Description {
 public:
  explicit Description(const Schedule& s)
      : s_(s),
        p_(s.program()),
        g_(s.graph()),
        values_(p_.values()),
        types_(p_.types()),
        launches_(s.launches()) {
    for (const std::vector<NodeId>& chain : s.overlaps()) {
      for (NodeId first : chain) overlap_of_[first] = &chain;
    }
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (IsReduction(g_, id) && !types_[id].shape.empty() &&
          SpanOf(g_.nodes[id].op) != Span::kAcross)
        ++reductions_;
      if (As<AllGather>(g_, id)) ++gathers_;
      if (const NodeId stored = StoredCollective(g_, values_, id); stored >= 0)
        stores_of_[stored].push_back(id);
      folds_unsplit_ |= FoldsAll(p_, id) && types_[id].layout == Layout::Replicated();
    }
  }

  std::string Text() const {
    std::vector<std::string> words;
    std::vector<NodeId> run;  // operations in no kernel, of one kind
    for (int launch : s_.order()) {
      const std::vector<NodeId>& nodes = launches_[launch].nodes;
      if (nodes.size() == 1 && StoredCollective(g_, values_, nodes[0]) >= 0) continue;
      if (const std::vector<NodeId>* chain = OverlapOf(nodes[0]); chain != nullptr) {
        Flush(&run, &words);
        if (chain->front() == nodes[0]) words.push_back(Overlapped(*chain));
        continue;
      }
      const bool is_kernel = nodes.size() > 1;
      const bool differs =
          !run.empty() && (PartOf(run[0]) != PartOf(nodes[0]) ||
                           SpanOf(g_.nodes[run[0]].op) != SpanOf(g_.nodes[nodes[0]].op) ||
                           PartOf(run[0]) == Part::kOther);
      if (!run.empty() && (is_kernel || differs)) Flush(&run, &words);
      if (is_kernel) {
        words.push_back(absl::StrCat("fuse(", Kernel(nodes), ")"));
      } else {
        run.push_back(nodes[0]);
      }
    }
    Flush(&run, &words);
    if (const std::string states = SlicedStates(); !states.empty())
      words.push_back(absl::StrCat("slice", states));
    return absl::StrJoin(words, "; ");
  }

 private:
  /// The overlap that has the launch of that first node; null for none.
  const std::vector<NodeId>* OverlapOf(NodeId first) const {
    const auto overlap = overlap_of_.find(first);
    return overlap == overlap_of_.end() ? nullptr : overlap->second;
  }

  std::string Overlapped(const std::vector<NodeId>& chain) const {
    std::vector<std::string> words;
    for (NodeId first : chain) {
      const std::vector<NodeId>& nodes = s_.launch(first).nodes;
      words.push_back(nodes.size() > 1 ? absl::StrCat("fuse(", Kernel(nodes), ")")
                                       : Words(PartOf(first), nodes, /*name_gathers=*/true));
    }
    return absl::StrCat("ol(", absl::StrJoin(words, ", "), ")");
  }

  Part PartOf(NodeId id) const {
    switch (RoleOf(g_.nodes[id].op)) {
      case Role::kCollective:
        if (As<ReduceScatter>(g_, id)) return Part::kReduceScatter;
        if (As<AllReduce>(g_, id)) return Part::kAllReduce;
        if (As<AllGather>(g_, id)) return Part::kAllGather;
        break;
      case Role::kProduct:
      case Role::kTransfer:
      case Role::kSend:
        return Part::kOther;
      case Role::kDeclaration:
      case Role::kConstant:
      case Role::kElementwise:
      case Role::kFold:
      case Role::kTotal:
      case Role::kView:
      case Role::kShard:
      case Role::kStore:
        return Part::kCompute;
      case Role::kNone:
        break;
    }
    CC_CHECK(false);
  }

  void Flush(std::vector<NodeId>* run, std::vector<std::string>* words) const {
    if (!run->empty()) words->push_back(Words(PartOf((*run)[0]), *run, /*name_gathers=*/true));
    run->clear();
  }

  /// "RS", "AR g h" where the program has several, "AG p".
  std::string Words(Part part, const std::vector<NodeId>& nodes, bool name_gathers) const {
    std::string names, span;
    for (NodeId id : nodes) {
      if (SpanOf(g_.nodes[id].op) != Span::kAll)
        span = absl::StrCat("(", Name(SpanOf(g_.nodes[id].op)), ")");
      if (SpanOf(g_.nodes[id].op) == Span::kAcross)
        continue;  // what it takes was named when it was reduced within nodes
      if (IsReduction(g_, id) && types_[id].shape.empty()) {
        if (folds_unsplit_) absl::StrAppend(&names, " of ", DeclaredBelow(id));
      } else if (IsReduction(g_, id) && reductions_ > 1) {
        absl::StrAppend(&names, " ", ValueText(g_, g_.nodes[id].inputs[0]));
      }
      if (As<AllGather>(g_, id) && name_gathers) absl::StrAppend(&names, Stored(id));
    }
    switch (part) {
      case Part::kReduceScatter:
        return absl::StrCat("RS", span, SlicedDims(nodes), names);
      case Part::kAllReduce:
        return absl::StrCat("AR", span, names);
      case Part::kAllGather:
        return absl::StrCat("AG", span, names);
      case Part::kCompute:
      case Part::kComputeAfterFold:
      case Part::kComputeAfterGather:
        return "C";
      case Part::kFold:
        return "fold";
      case Part::kFoldSum:
        return absl::StrCat("AR", names);
      case Part::kSend:
      case Part::kOther:
        return Other(nodes[0]);
    }
    CC_CHECK(false);
  }

  /// "MM", "send p", "A2A": an operation that is a launch of its own.
  std::string Other(NodeId id) const {
    if (As<MatMul>(g_, id)) return "MM";
    if (As<Send>(g_, id) && types_[id].layout.sliced()) {
      return types_[id].shape.size() == 1 ? "send slices" : absl::StrCat("send", SlicedDims({id}));
    }
    if (As<Send>(g_, id)) return "send";
    if (As<AllToAll>(g_, id)) return "A2A";
    if (As<Broadcast>(g_, id)) return "broadcast";
    CC_CHECK(As<ReduceTo>(g_, id));
    return "reduce";
  }

  /// Of the first phase that evaluates it.
  Part PartInKernel(NodeId id, const KernelPhases& phases, bool has_gathers) const {
    if (types_[id].shape.empty() && As<AllReduce>(g_, id)) return Part::kFoldSum;
    if (FoldsAll(p_, id)) return Part::kFold;
    if (As<Send>(g_, id)) return Part::kSend;
    const Part part = PartOf(id);
    if (part != Part::kCompute) return part;
    for (const KernelPhase& phase : phases.phases) {
      if (!std::binary_search(phase.evaluated.begin(), phase.evaluated.end(), id)) continue;
      if (phase.round > 0) return Part::kComputeAfterFold;
      if (phase.on_slices) return Part::kCompute;
      break;
    }
    return has_gathers ? Part::kComputeAfterGather : Part::kCompute;
  }

  std::string Kernel(const std::vector<NodeId>& nodes) const {
    const KernelPhases phases = PhasesOf(p_, nodes);
    std::map<Part, std::vector<NodeId>> parts;
    size_t gathers = 0;
    for (NodeId id : nodes) gathers += As<AllGather>(g_, id) != nullptr;
    for (NodeId id : nodes) {
      const NodeId stored = StoredCollective(g_, values_, id);
      if (stored >= 0 && launches_.of[stored] == launches_.of[id]) continue;
      parts[PartInKernel(id, phases, gathers > 0)].push_back(id);
    }
    const bool has_all = gathers == gathers_;
    std::vector<std::string> words;
    for (const auto& [part, members] : parts) words.push_back(Words(part, members, !has_all));
    return absl::StrJoin(words, ", ");
  }

  /// Names of the tensors that a scalar is computed from: "p", "g m v p".
  std::string DeclaredBelow(NodeId id) const {
    std::set<NodeId> below = {id};
    std::vector<std::string> names;
    while (!below.empty()) {
      const NodeId last = values_[*below.rbegin()];
      below.erase(std::prev(below.end()));
      below.insert(g_.nodes[last].inputs.begin(), g_.nodes[last].inputs.end());
      if ((As<Input>(g_, last) || As<State>(g_, last)) && !types_[last].shape.empty())
        names.push_back(ValueText(g_, last));
    }
    std::reverse(names.begin(), names.end());
    return absl::StrJoin(names, " ");
  }

  /// Names of the states and outputs that a gather's value goes to: " p m".
  std::string Stored(NodeId gather) const {
    std::string names;
    const auto stores = stores_of_.find(gather);
    if (stores == stores_of_.end()) return names;
    for (NodeId id : stores->second) {
      const auto* output = As<Output>(g_, id);
      absl::StrAppend(&names, " ",
                      output != nullptr ? output->name : ValueText(g_, g_.nodes[id].inputs[0]));
    }
    return names;
  }

  /// "[flat]" where a tensor has several dimensions to slice.
  std::string SlicedDims(const std::vector<NodeId>& nodes) const {
    std::vector<std::string> dims;
    bool vectors = true;
    for (NodeId id : nodes) {
      dims.push_back(DimText(types_[id].layout.dim));
      vectors &= types_[id].shape.size() == 1;
    }
    return vectors ? "" : absl::StrCat("[", absl::StrJoin(dims, " "), "]");
  }

  std::string SlicedStates() const {
    std::string names;
    for (NodeId id = 0; id < g_.size(); ++id) {
      const auto* state = As<State>(g_, id);
      if (state != nullptr && state->type.layout.sliced())
        absl::StrAppend(&names, " ", state->name);
    }
    return names;
  }

  const Schedule& s_;
  const TypedGraph& p_;
  const Graph& g_;
  const std::vector<NodeId>& values_;
  const std::vector<TensorType>& types_;
  const Launches& launches_;
  std::map<NodeId, const std::vector<NodeId>*> overlap_of_;  // by first node of a launch
  std::map<NodeId, std::vector<NodeId>> stores_of_;          // of collectives' results
  int reductions_ = 0;
  size_t gathers_ = 0;
  bool folds_unsplit_ = false;  // sums of slices are told apart by what they are of
};

}  // namespace

std::string Describe(const Schedule& s) { return Description(s).Text(); }

}  // namespace coconet
