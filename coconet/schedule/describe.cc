#include "coconet/schedule/describe.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "coconet/schedule/kernel_phases.h"
#include "coconet/schedule/prologue.h"

namespace coconet {
namespace {

using Kind = OutlinedWork::Kind;

/// What a kernel does, in its order.
enum class Part : uint8_t {
  kProduct,
  kScatter,
  kReduceScatter,
  kAllReduce,
  kArrival,  // an AllToAll of what is in memory
  kCompute,
  kFold,
  kFoldSum,
  kComputeAfterFold,
  kAllGather,
  kExchange,  // an AllToAll of what the kernel computes
  kComputeAfterGather,
  kSend
};

Kind KindOf(Part part) {
  switch (part) {
    case Part::kProduct:
      return Kind::kMatMul;
    case Part::kScatter:
      return Kind::kScatter;
    case Part::kReduceScatter:
      return Kind::kReduceScatter;
    case Part::kAllReduce:
    case Part::kFoldSum:
      return Kind::kAllReduce;
    case Part::kCompute:
    case Part::kComputeAfterFold:
    case Part::kComputeAfterGather:
      return Kind::kCompute;
    case Part::kFold:
      return Kind::kFold;
    case Part::kAllGather:
      return Kind::kAllGather;
    case Part::kArrival:
    case Part::kExchange:
      return Kind::kAllToAll;
    case Part::kSend:
      return Kind::kSend;
  }
  CC_CHECK(false);
}

/// The kind of an operation that is a launch alone.
Kind KindOf(const Graph& g, NodeId id) {
  if (As<ReduceScatter>(g, id)) return Kind::kReduceScatter;
  if (As<AllReduce>(g, id)) return Kind::kAllReduce;
  if (As<AllGather>(g, id)) return Kind::kAllGather;
  if (As<MatMul>(g, id)) return Kind::kMatMul;
  if (As<ScatterAdd>(g, id)) return Kind::kScatter;
  if (As<Send>(g, id)) return Kind::kSend;
  if (As<AllToAll>(g, id)) return Kind::kAllToAll;
  if (As<Broadcast>(g, id)) return Kind::kBroadcast;
  if (As<ReduceTo>(g, id)) return Kind::kReduceTo;
  CC_CHECK(!Communicates(g, id));
  return Kind::kCompute;
}

/// Several such operations one after the other are one group.
bool JoinsGroups(Kind kind) {
  return kind == Kind::kReduceScatter || kind == Kind::kAllReduce || kind == Kind::kAllGather ||
         kind == Kind::kCompute;
}

const char* WordOf(Kind kind) {
  switch (kind) {
    case Kind::kReduceScatter:
      return "RS";
    case Kind::kAllReduce:
      return "AR";
    case Kind::kCompute:
      return "C";
    case Kind::kFold:
      return "fold";
    case Kind::kAllGather:
      return "AG";
    case Kind::kMatMul:
      return "MM";
    case Kind::kScatter:
      return "scatter";
    case Kind::kSend:
      return "send";
    case Kind::kAllToAll:
      return "A2A";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kReduceTo:
      return "reduce";
  }
  CC_CHECK(false);
}

/// "RS[flat]", "AR g h" where the program has several, "AG(node) p", "send slices".
std::string Text(const OutlinedWork& work) {
  std::string text = WordOf(work.kind);
  if (work.span != Span::kAll) absl::StrAppend(&text, "(", Name(work.span), ")");
  if (!work.dims.empty()) {
    const auto dim_text = [](std::string* out, int dim) { out->append(DimText(dim)); };
    absl::StrAppend(&text, "[", absl::StrJoin(work.dims, " ", dim_text), "]");
  } else if (work.sliced) {
    absl::StrAppend(&text, " slices");
  }
  for (const OutlinedWork::Operand& operand : work.operands)
    absl::StrAppend(&text, operand.is_scalar ? " of " : " ", absl::StrJoin(operand.tensors, " "));
  return text;
}

std::string Text(const WorkGroup& group) {
  const std::string works = absl::StrJoin(
      group.works, ", ", [](std::string* out, const OutlinedWork& work) { *out += Text(work); });
  return group.is_kernel ? absl::StrCat("fuse(", works, ")") : works;
}

std::string Text(const std::vector<WorkGroup>& step) {
  const std::string groups = absl::StrJoin(
      step, ", ", [](std::string* out, const WorkGroup& group) { *out += Text(group); });
  return step.size() > 1 ? absl::StrCat("ol(", groups, ")") : groups;
}

bool IsReduction(const Graph& g, NodeId id) {
  return As<AllReduce>(g, id) || As<ReduceScatter>(g, id);
}

/// The collective whose result an update or output stores as it is; -1 for none.
NodeId StoredCollective(const TypedGraph& program, NodeId id) {
  if (RoleOf(program.op(id)) != Role::kStore) return -1;
  const NodeId value = program.value(program.inputs(id).back());
  return Communicates(program.op(value)) ? value : -1;
}

class Outliner {
 public:
  explicit Outliner(const Schedule& s)
      : s_(s), p_(s.program()), g_(s.graph()), launches_(s.launches()) {
    for (const std::vector<NodeId>& chain : s.overlaps()) {
      for (NodeId first : chain) overlap_of_[first] = &chain;
    }
    for (NodeId id = 0; id < g_.size(); ++id) {
      if (IsReduction(g_, id) && !p_.type(id).shape.empty() &&
          SpanOf(g_.nodes[id].op) != Span::kAcross)
        ++reductions_;
      if (As<AllGather>(g_, id)) ++gathers_;
      if (const NodeId stored = StoredCollective(p_, id); stored >= 0)
        stores_of_[stored].push_back(id);
      folds_unsplit_ |= FoldsAll(p_, id) && p_.type(id).layout == Layout::Replicated();
    }
  }

  Outline Find() const {
    Outline outline;
    std::vector<NodeId> run;  // operations in no kernel, of one kind
    const auto end_run = [&] {
      if (!run.empty()) outline.steps.push_back({Alone(run)});
      run.clear();
    };
    for (int launch : s_.order()) {
      const std::vector<NodeId>& nodes = launches_[launch].nodes;
      if (nodes.size() == 1 && StoredCollective(p_, nodes[0]) >= 0) continue;
      const auto overlap = overlap_of_.find(nodes[0]);
      if (overlap != overlap_of_.end() || nodes.size() > 1 || !Joins(run, nodes[0])) end_run();
      if (overlap != overlap_of_.end()) {
        const std::vector<NodeId>& chain = *overlap->second;
        if (chain.front() == nodes[0]) outline.steps.push_back(Overlapped(chain));
      } else if (nodes.size() > 1) {
        outline.steps.push_back({Kernel(nodes)});
      } else {
        run.push_back(nodes[0]);
      }
    }
    end_run();
    for (const Node& node : g_.nodes) {
      const auto* state = std::get_if<State>(&node.op);
      if (state != nullptr && state->type.layout.sliced())
        outline.sliced_states.push_back(state->name);
    }
    return outline;
  }

 private:
  bool Joins(const std::vector<NodeId>& run, NodeId id) const {
    if (run.empty()) return true;
    const Kind kind = KindOf(g_, id);
    return JoinsGroups(kind) && kind == KindOf(g_, run[0]) &&
           SpanOf(g_.nodes[id].op) == SpanOf(g_.nodes[run[0]].op);
  }

  WorkGroup Alone(const std::vector<NodeId>& nodes) const {
    return {.is_kernel = false,
            .works = {WorkOf(KindOf(g_, nodes[0]), nodes, /*name_gathers=*/true)}};
  }

  std::vector<WorkGroup> Overlapped(const std::vector<NodeId>& chain) const {
    std::vector<WorkGroup> groups;
    for (NodeId first : chain) {
      const std::vector<NodeId>& nodes = s_.launch(first).nodes;
      groups.push_back(nodes.size() > 1 ? Kernel(nodes) : Alone(nodes));
    }
    return groups;
  }

  OutlinedWork WorkOf(Kind kind, const std::vector<NodeId>& nodes, bool name_gathers) const {
    OutlinedWork work{.kind = kind};
    for (NodeId id : nodes) {
      const Span span = SpanOf(g_.nodes[id].op);
      if (span != Span::kAll) work.span = span;
      if (span == Span::kAcross) continue;  // what it takes was named when it was reduced in nodes
      if (IsReduction(g_, id) && p_.type(id).shape.empty()) {
        if (folds_unsplit_) work.operands.push_back({true, DeclaredBelow(id)});
      } else if (IsReduction(g_, id) && reductions_ > 1) {
        work.operands.push_back({false, {ValueText(g_, g_.nodes[id].inputs[0])}});
      }
      if (As<AllGather>(g_, id) && name_gathers) NameStores(id, work);
    }
    if (kind == Kind::kSend && p_.type(nodes[0]).layout.sliced()) {
      work.sliced = true;
      work.dims = SlicedDims({nodes[0]});
    }
    if (kind == Kind::kReduceScatter) work.dims = SlicedDims(nodes);
    return work;
  }

  /// The part of the first phase that evaluates the node.
  Part PartInKernel(NodeId id, const std::vector<NodeId>& nodes, const KernelPhases& phases,
                    bool has_gathers) const {
    if (As<MatMul>(g_, id)) return Part::kProduct;
    if (IsOfPrologue(p_, nodes, id)) return Part::kScatter;
    if (p_.type(id).shape.empty() && As<AllReduce>(g_, id)) return Part::kFoldSum;
    if (FoldsAll(p_, id)) return Part::kFold;
    if (As<Send>(g_, id)) return Part::kSend;
    if (As<ReduceScatter>(g_, id)) return Part::kReduceScatter;
    if (As<AllReduce>(g_, id)) return Part::kAllReduce;
    if (As<AllGather>(g_, id)) return Part::kAllGather;
    if (As<AllToAll>(g_, id)) return IsExchanged(p_, nodes, id) ? Part::kExchange : Part::kArrival;
    CC_CHECK(KindOf(g_, id) == Kind::kCompute);
    for (const KernelPhase& phase : phases.phases) {
      if (!std::binary_search(phase.evaluated.begin(), phase.evaluated.end(), id)) continue;
      if (phase.round > 0) return Part::kComputeAfterFold;
      if (phase.on_slices) return phase.arriving ? Part::kComputeAfterGather : Part::kCompute;
      break;
    }
    return has_gathers ? Part::kComputeAfterGather : Part::kCompute;
  }

  WorkGroup Kernel(const std::vector<NodeId>& nodes) const {
    const KernelPhases phases = PhasesOf(p_, nodes);
    std::map<Part, std::vector<NodeId>> parts;
    size_t gathers = 0;
    for (NodeId id : nodes) gathers += As<AllGather>(g_, id) != nullptr;
    for (NodeId id : nodes) {
      const NodeId stored = StoredCollective(p_, id);
      if (stored >= 0 && launches_.of[stored] == launches_.of[id]) continue;
      parts[PartInKernel(id, nodes, phases, gathers > 0)].push_back(id);
    }
    const bool has_all = gathers == gathers_;
    WorkGroup kernel{.is_kernel = true};
    for (const auto& [part, members] : parts)
      kernel.works.push_back(WorkOf(KindOf(part), members, !has_all));
    return kernel;
  }

  /// Names of the tensors that a scalar is computed from: "p", "g m v p".
  std::vector<std::string> DeclaredBelow(NodeId id) const {
    std::set<NodeId> below = {id};
    std::vector<std::string> names;
    while (!below.empty()) {
      const NodeId last = p_.value(*below.rbegin());
      below.erase(std::prev(below.end()));
      below.insert(g_.nodes[last].inputs.begin(), g_.nodes[last].inputs.end());
      if ((As<Input>(g_, last) || As<State>(g_, last)) && !p_.type(last).shape.empty())
        names.push_back(ValueText(g_, last));
    }
    std::reverse(names.begin(), names.end());
    return names;
  }

  /// Adds the names of the states and outputs that a gather's value goes to.
  void NameStores(NodeId gather, OutlinedWork& work) const {
    const auto stores = stores_of_.find(gather);
    if (stores == stores_of_.end()) return;
    for (NodeId id : stores->second) {
      const auto* output = As<Output>(g_, id);
      work.operands.push_back(
          {false, {output != nullptr ? output->name : ValueText(g_, g_.nodes[id].inputs[0])}});
    }
  }

  /// The sliced dimensions of the nodes; none if all are vectors.
  std::vector<int> SlicedDims(const std::vector<NodeId>& nodes) const {
    std::vector<int> dims;
    bool vectors = true;
    for (NodeId id : nodes) {
      dims.push_back(p_.type(id).layout.dim);
      vectors &= p_.type(id).shape.size() == 1;
    }
    return vectors ? std::vector<int>() : dims;
  }

  const Schedule& s_;
  const TypedGraph& p_;
  const Graph& g_;
  const Launches& launches_;
  std::map<NodeId, const std::vector<NodeId>*> overlap_of_;  // by first node of a launch
  std::map<NodeId, std::vector<NodeId>> stores_of_;          // of collectives' results
  int reductions_ = 0;
  size_t gathers_ = 0;
  bool folds_unsplit_ = false;  // sums of slices are told apart by what they are of
};

}  // namespace

Outline OutlineOf(const Schedule& s) { return Outliner(s).Find(); }

std::string Describe(const Schedule& s) {
  const Outline outline = OutlineOf(s);
  std::vector<std::string> words;
  for (const std::vector<WorkGroup>& step : outline.steps) words.push_back(Text(step));
  if (!outline.sliced_states.empty())
    words.push_back(absl::StrCat("slice ", absl::StrJoin(outline.sliced_states, " ")));
  if (!s.buckets().empty()) words.push_back(absl::StrCat(s.buckets().size(), " buckets"));
  if (!s.issued().empty()) {
    // Orders of one program's launches differ in nothing that a few words would tell.
    const std::string digest = Fingerprint(NodeList(s.issued()));
    words.push_back(absl::StrCat("order ", digest.substr(0, 4)));
  }
  return absl::StrJoin(words, "; ");
}

std::string DescribeLaunch(const Graph& g, const std::vector<NodeId>& nodes) {
  std::set<OutlinedWork> works;  // in the order of kernels
  for (NodeId id : nodes) {
    const Op& op = g.nodes[id].op;
    if (RoleOf(op) == Role::kStore && nodes.size() > 1) continue;
    works.insert({.kind = KindOf(g, id), .span = SpanOf(op)});
  }
  return Text(WorkGroup{.is_kernel = works.size() != 1, .works = {works.begin(), works.end()}});
}

}  // namespace coconet
