#include "jit/config/config_traits.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "coconet/schedule/kernel_phases.h"
#include "jit/config/config.h"

namespace coconet {
namespace {

/// A kernel that uses what it gathers or exchanges beyond storing it.
bool UsesOwnGather(const TypedGraph& program, const std::vector<NodeId>& kernel) {
  const Graph& g = program.graph();
  const std::vector<std::vector<NodeId>>& users = program.users();
  for (NodeId id : kernel) {
    if (!Is<AllGather>(g, id) && !IsExchanged(program, kernel, id)) continue;
    std::vector<NodeId> pending = users[id];
    while (!pending.empty()) {
      const NodeId user = pending.back();
      pending.pop_back();
      if (!std::binary_search(kernel.begin(), kernel.end(), user)) continue;
      if (!IsStore(g, user)) return true;
      pending.insert(pending.end(), users[user].begin(), users[user].end());
    }
  }
  return false;
}

/// A kernel's nodes take what is added up over all tensors, computed in it.
bool TotalsUp(const TypedGraph& program, const std::vector<NodeId>& kernel) {
  const Graph& g = program.graph();
  std::vector<NodeId> pending = kernel;
  std::vector<bool> seen(g.size());
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    for (NodeId input : g.nodes[id].inputs) {
      if (Is<Total>(g, input)) return true;
      if (seen[input] || !program.type(input).shape.empty() || program.communicates(input))
        continue;
      seen[input] = true;
      pending.push_back(input);
    }
  }
  return false;
}

/// The traits of all tensors of a list together.
ConfigTraits TraitsOfList(const Schedule& s, int ranks) {
  ConfigTraits all;
  for (size_t k = 0; k < s.of_kinds().size(); ++k) {
    ConfigTraits one = TraitsOf(s.of_kinds()[k], ranks);
    const int64_t count = s.kinds().count[k];
    one.library_possible = one.library_possible && all.library_possible;
    one.over_all_possible = one.over_all_possible && all.over_all_possible;
    one.only_exchanges = one.only_exchanges && all.only_exchanges;
    one.all_reduce_bytes = all.all_reduce_bytes + count * one.all_reduce_bytes;
    one.bytes = all.bytes + count * one.bytes;
    one.elements = all.elements + count * one.elements;
    one.widest = std::max(all.widest, one.widest);
    one.narrowest = std::min(all.narrowest, one.narrowest);
    all = one;
  }
  all.folds_and_uses = WorksInBatches(s);
  return all;
}

/// A tensor that the program declares or stores, that ranks exchange, or that one launch leaves for
/// another.
bool IsInMemory(const Schedule& s, NodeId id) {
  const Graph& g = s.graph();
  if (Is<Input>(g, id) || Is<State>(g, id) || IsStore(g, id) || s.program().communicates(id))
    return true;
  const std::vector<int>& of = s.launches().of;
  return of[id] >= 0 &&
         absl::c_any_of(s.program().users()[id], [&](NodeId user) { return of[user] != of[id]; });
}

}  // namespace

ConfigTraits TraitsOf(const Schedule& s, int ranks) {
  if (!s.graph().lists.empty()) return TraitsOfList(s, ranks);
  ConfigTraits t;
  std::vector<int> kernel_of(s.graph().size(), -1);
  for (size_t k = 0; k < s.kernels().size(); ++k) {
    for (NodeId id : s.kernels()[k]) kernel_of[id] = static_cast<int>(k);
    t.chunk_flags = t.chunk_flags || UsesOwnGather(s.program(), s.kernels()[k]);
  }
  for (NodeId id = 0; id < s.graph().size(); ++id) {
    const bool fused = kernel_of[id] >= 0;
    const TensorType& type = s.type(id);
    const int64_t elements = NumElements(type.shape);
    t.elements = std::max(t.elements, elements);
    if (!type.shape.empty() && IsInMemory(s, id)) {
      const int size = static_cast<int>(SizeOf(type.dtype));
      t.widest = std::max(t.widest, size);
      t.narrowest = std::min(t.narrowest, size);
    }
    if (Is<Input>(s.graph(), id) || Is<State>(s.graph(), id))
      t.bytes += elements * static_cast<int64_t>(SizeOf(type.dtype));
    const Span span = s.program().span(id);
    t.by_node = t.by_node || span != Span::kAll;
    t.across = t.across || span == Span::kAcross;
    const NodeId fold = FoldBelow(s.program(), id);
    const bool adds_own_fold =
        fused && fold >= 0 && kernel_of[fold] == kernel_of[id];  // as it meets the other ranks
    if (Is<AllReduce>(s.graph(), id) && span == Span::kAll && !adds_own_fold) {
      t.fused_all_reduce = t.fused_all_reduce || fused;
      t.unfused_all_reduce = t.unfused_all_reduce || !fused;
      const int64_t bytes = elements * static_cast<int64_t>(SizeOf(type.dtype));
      t.all_reduce_bytes = std::max(t.all_reduce_bytes, bytes);
      if (!fused) t.all_reduces_bytes += bytes;
    }
    t.sends = t.sends || Is<Send>(s.graph(), id);
    t.fused_over_all =
        t.fused_over_all || (s.program().communicates(id) && fused && span == Span::kAll);
    t.fused_sends = t.fused_sends || (Is<Send>(s.graph(), id) && fused);
    if (Is<ReduceScatter>(s.graph(), id) || Is<AllGather>(s.graph(), id))
      (fused ? t.fused_slices : t.unfused_slices) = true;
    t.unfused_gathers = t.unfused_gathers || (Is<AllGather>(s.graph(), id) && !fused);
    if (!s.program().communicates(id) || fused || !s.program().is_kernel_work(id)) continue;
    t.unfused_collective = true;
    t.only_exchanges = t.only_exchanges && Is<AllToAll>(s.graph(), id);
    (span == Span::kNode ? t.unfused_in_node : t.unfused_over_all) = true;
    if (Is<AllToAll>(s.graph(), id)) continue;  // laid out for the library by kernels
    const NodeId sliced = Is<AllGather>(s.graph(), id) ? s.program().inputs(id)[0] : id;
    if (const Layout& layout = s.type(sliced).layout; layout.cut()) {
      const bool contiguous = !layout.weighted() && s.program().slicing(sliced, ranks).contiguous();
      t.library_possible = t.library_possible && contiguous;
      t.over_all_possible = t.over_all_possible && (contiguous || span == Span::kNode);
    }
  }
  for (const std::vector<NodeId>& bucket : s.buckets()) {
    const Span span = s.program().span(bucket[0]);
    t.buckets_over_all = t.buckets_over_all || span == Span::kAll;
    t.buckets_in_node = t.buckets_in_node || span == Span::kNode;
  }
  return t;
}

bool WorksInBatches(const Schedule& s) {
  const std::vector<bool>& each = s.program().each();
  return absl::c_any_of(s.kernels(), [&](const std::vector<NodeId>& kernel) {
    const bool folds =
        absl::c_any_of(kernel, [&](NodeId id) { return each[id] && FoldsAll(s.program(), id); });
    return folds && PhasesOf(s.program(), kernel).phases.size() > 1 &&
           !TotalsUp(s.program(), kernel);
  });
}

}  // namespace coconet
