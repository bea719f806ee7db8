#include "jit/config/config_traits.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/schedule/chunks.h"
#include "coconet/schedule/kernel_phases.h"
#include "coconet/schedule/prologue.h"
#include "jit/config/beside.h"
#include "jit/launches/pieces.h"
#include "runtime/plan.h"

namespace coconet {
namespace {

constexpr int kMaxPieces = 256;

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

/// Whether nothing takes the result of a launch but one state, and its operand is no input: the
/// next step's computations may run beside it.
bool MayOutlast(const Schedule& s, int launch) {
  const Graph& g = s.graph();
  const Launches& launches = s.launches();
  const NodeId id = launches[launch].nodes[0];
  if (Is<Input>(g, s.program().value(g.nodes[id].inputs[0]))) return false;
  int updates = 0;
  for (const Launch& other : launches.list) {
    if (!absl::c_linear_search(other.after, launch)) continue;
    if (other.nodes.size() != 1 || !Is<Update>(g, other.nodes[0])) return false;
    ++updates;
  }
  return updates == 1;
}

/// Why `c` has a number of pieces that `s` does not admit, or what no overlap of `s` does; "" if it
/// has not.
std::string WhyNotInPieces(const Config& c, const Schedule& s, const ConfigSpace& space) {
  if (c.pieces < 1 || c.pieces > kMaxPieces ||
      (c.pieces == 1) != (s.overlaps().empty() || c.tiles > 0)) {
    return absl::StrCat("want pieces=2 to ", kMaxPieces, " for a schedule with overlaps, else 1");
  }
  if (c.columns && (c.pieces == 1 || space.multiprocessors > 0))
    return "want columns=1 for pieces of an overlap only, on hosts";
  if (s.overlaps().empty()) return "";
  if (c.ring) return "an overlap has no ring";
  if (c.one_shot != OneShot::kPull) return "an overlap has no one-shot but by pull";
  for (const std::vector<NodeId>& overlap : s.overlaps()) {
    if (LeftToLibrary(c.protocol, space.nodes) == LibraryDoes::kNone &&
        ChunksOf(s, overlap).space.exchanges)
      return "a kernel does an AllToAll at once; want a library in an overlap of one";
    if (c.tiles > 0) continue;
    const absl::Status fit = CountPieces(s, overlap, space.ranks, c.pieces, c.columns).status();
    if (!fit.ok()) return std::string(fit.message());
  }
  return "";
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

bool Exchanges(const Schedule& s) {
  return absl::c_any_of(s.kernels(), [&](const std::vector<NodeId>& kernel) {
    if (TiledProductOf(s.program(), kernel) >= 0) return false;  // has an order of its own
    return absl::c_any_of(kernel, [&](NodeId id) { return IsExchanged(s.program(), kernel, id); });
  });
}

bool HasConcurrency(const Schedule& s, Protocol protocol, int nodes) {
  const LibraryDoes library = LeftToLibrary(protocol, nodes);
  const Launches& launches = s.launches();
  std::set<NodeId> in_overlaps;
  for (const std::vector<NodeId>& overlap : s.overlaps())
    in_overlaps.insert(overlap.begin(), overlap.end());
  const auto computes = [&](int launch) {
    return absl::c_none_of(launches[launch].nodes,
                           [&](NodeId id) { return s.program().communicates(id); });
  };
  for (int launch = 0; launch < launches.size(); ++launch) {
    const std::vector<NodeId>& nodes = launches[launch].nodes;
    if (nodes.size() != 1 || in_overlaps.contains(nodes[0]) ||
        !DoneBy(library, s.program(), nodes[0]))
      continue;
    const std::vector<bool> bound = MayOutlast(s, launch) ? std::vector<bool>(launches.size())
                                                          : BeforeOrAfter(launches.list, launch);
    for (int other = 0; other < launches.size(); ++other) {
      if (!bound[other] && computes(other)) return true;
    }
  }
  return false;
}

bool Multiplies(const Schedule& s) {
  return absl::c_any_of(s.launches().list, [&](const Launch& launch) {
    return launch.nodes.size() == 1 && Is<MatMul>(s.graph(), launch.nodes[0]);
  });
}

absl::string_view WhyNot(Protocol protocol, const ConfigTraits& t, const ConfigSpace& space) {
  const LibraryDoes library = LeftToLibrary(protocol, space.nodes);
  if (t.fused_sends && space.stages_apart)
    return "kernels do not reach the stages on other nodes; a library sends to them";
  if ((t.buckets_in_node && library != LibraryDoes::kAll) ||
      (t.buckets_over_all && library == LibraryDoes::kNone))
    return "a library does the AllReduces of a bucket";
  if (t.by_node && space.nodes == 1) return "collectives are split by node, and there is one node";
  const bool generates_none =
      protocol == Protocol::kGenerated && t.unfused_over_all && !t.unfused_in_node;
  if (space.nodes > 1 && (t.fused_over_all || generates_none))
    return "kernels do not reach the ranks of other nodes";
  const bool calls = library == LibraryDoes::kAll
                         ? t.unfused_collective
                         : library == LibraryDoes::kOverAllRanks && t.unfused_over_all;
  // Across nodes nothing else does an AllToAll, which sums nothing.
  const bool has_choice = space.nodes == 1 || !t.only_exchanges;
  if (((calls && has_choice) || t.across) && !space.library)
    return "no library collectives here: they sum in any order, or go by way of the host";
  const bool contiguous = library == LibraryDoes::kAll ? t.library_possible : t.over_all_possible;
  return calls && !contiguous ? "library collectives want contiguous slices" : "";
}

std::string WhyNot(const Config& c, const Schedule& s, const ConfigSpace& space) {
  if (std::string no = WhyNoTiles(c, s, space); !no.empty()) return no;
  if (c.beside < 0 || c.beside > kMaxBlocks ||
      (c.beside > 0 && !CommunicatesBeside(s, c.protocol, space.nodes))) {
    return absl::StrCat(
        "want beside in 0..", kMaxBlocks,
        " for a schedule that overlaps a product with collectives by kernels, else 0");
  }
  if (std::string no = WhyNotInPieces(c, s, space); !no.empty()) return no;
  if (c.gemm < 0 || c.gemm >= (Multiplies(s) ? kMostGemmCandidates : 1)) {
    return absl::StrCat("want gemm in 0..", kMostGemmCandidates - 1,
                        " for a schedule with matrix products, else 0");
  }
  if (c.bucket > 0 && !s.buckets().empty())
    return "want bucket 0 for a schedule with buckets of its own";
  if (c.concurrent && !HasConcurrency(s, c.protocol, space.nodes)) {
    return "want concurrent=1 only where a library does a collective that is in no overlap, and "
           "there is something to compute meanwhile";
  }
  const ConfigTraits t = TraitsOf(s, space.ranks);
  if (c.remote_first && !Exchanges(s))
    return "want no remote-first where no kernel computes what an AllToAll of it takes";
  if (c.batch > 0 && !t.folds_and_uses)
    return "want batch=0 where no kernel sums up each tensor of a list and goes on with the sums";
  return std::string(WhyNot(c.protocol, t, space));
}

}  // namespace coconet
