#include "jit/config/config.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/ir/lists.h"
#include "coconet/schedule/chunks.h"
#include "coconet/schedule/kernel_phases.h"
#include "jit/config/beside.h"
#include "jit/config/launch_shapes.h"
#include "jit/launches/pieces.h"
#include "runtime/plan.h"

namespace coconet {
namespace {

constexpr int64_t kMaxChunk = int64_t{1} << 30;
constexpr int kMaxBlocks = 1024;
constexpr int kMaxPieces = 256;
/// Elements per rank: with a handful of tensors each, what a core's own cache holds, and its part
/// of a shared one.
constexpr int64_t kBatches[] = {int64_t{1} << 16, int64_t{1} << 19};
/// Bytes of AllReduces that are done together: what takes a network of 1 to 10 Gbit/s longer than
/// its messages' latency, and the bucket of PyTorch's DistributedDataParallel.
constexpr int64_t kBuckets[] = {256 << 10, 2 << 20, kMostBucket};
/// Below this working set everything stays in cache, where bypassing it only costs.
constexpr int64_t kStreamingBytes = 4 << 20;
/// Up to here an operand is copied in less time than a wait takes.
constexpr int64_t kStagedBytes = 256 << 10;
/// Up to here a wait takes longer than twice the bytes: other libraries' packets of data and flag
/// serve up to 16 KiB to 64 KiB.
constexpr int64_t kLLBytes = 64 << 10;

/// What of a schedule its configs depend on.
struct Traits {
  bool unfused_collective = false;  // that a library or a kernel can do
  bool only_exchanges = true;       // these are AllToAlls
  bool unfused_over_all = false,
       unfused_in_node = false;  // of these, over all ranks, and within nodes
  bool fused_over_all = false;
  bool by_node = false, across = false;  // some are not over all ranks, or are across nodes
  bool library_possible = true;          // unfused slices are contiguous
  bool over_all_possible = true;         // those of collectives over all ranks
  bool chunk_flags = false;              // a kernel computes on what it gathered or exchanged
  bool fused_all_reduce = false, unfused_all_reduce = false;
  bool sends = false, fused_sends = false;
  bool fused_slices = false, unfused_slices = false;  // reduced to, or gathered from
  bool unfused_gathers = false;
  bool folds_and_uses =
      false;  // a kernel of each tensor of a list folds it and goes on with the result
  bool buckets_over_all = false, buckets_in_node = false;
  int64_t all_reduce_bytes = 0;   // of the largest
  int64_t all_reduces_bytes = 0;  // of all that are in no kernel
  int64_t bytes = 0;
  int64_t elements = 0;
  int widest = 1, narrowest = 8;  // bytes of the element types in memory
};

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

Traits TraitsOf(const Schedule& s, int ranks);

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
Traits TraitsOfList(const Schedule& s, int ranks) {
  Traits all;
  for (size_t k = 0; k < s.of_kinds().size(); ++k) {
    Traits one = TraitsOf(s.of_kinds()[k], ranks);
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

Traits TraitsOf(const Schedule& s, int ranks) {
  if (!s.graph().lists.empty()) return TraitsOfList(s, ranks);
  Traits t;
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

/// Why a schedule's collectives cannot be done so on the ranks of `space`; "" where they can.
absl::string_view WhyNot(Protocol protocol, const Traits& t, const ConfigSpace& space) {
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

/// The protocols that make variants of their own, the library first.
std::vector<Protocol> ProtocolsOf(const Traits& t, const ConfigSpace& space) {
  std::vector<Protocol> protocols;
  for (Protocol protocol : {Protocol::kLibrary, Protocol::kGenerated}) {
    const bool differs = protocol == Protocol::kLibrary || t.unfused_collective;
    if (differs && WhyNot(protocol, t, space).empty()) protocols.push_back(protocol);
  }
  return protocols;
}

}  // namespace

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
    return absl::c_any_of(kernel, [&](NodeId id) { return IsExchanged(s.program(), kernel, id); });
  });
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

LibraryDoes LeftToLibrary(Protocol protocol, int nodes) {
  if (protocol == Protocol::kLibrary) return LibraryDoes::kAll;
  return nodes > 1 ? LibraryDoes::kOverAllRanks : LibraryDoes::kNone;
}

/// Numbers of pieces worth trying: 1 where the schedule overlaps nothing; none where nothing would
/// run beside anything else: kernels and products share the rank's core, so a collective of a
/// library must go out of the node, or pieces of a product stay in its cache.
std::vector<int> PieceCounts(const Schedule& s, const Traits& t, const ConfigSpace& space,
                             bool columns) {
  if (s.overlaps().empty()) return columns ? std::vector<int>() : std::vector<int>{1};
  const bool library = space.nodes > 1 || t.sends;
  std::vector<int> counts;
  for (int count : {2, 4, 8, 12, 16}) {
    int most = 0;
    for (const std::vector<NodeId>& overlap : s.overlaps()) {
      const absl::StatusOr<int> pieces = CountPieces(s, overlap, space.ranks, count, columns);
      const ChunkSpace space_of = ChunksOf(s, overlap).space;
      const bool pays = space_of.exchanges ? space.nodes > 1
                                           : library || (space_of.has_product && !space_of.tensors);
      if (!pieces.ok() || !pays) return {};
      most = std::max(most, *pieces);
    }
    if (most > count / 2) counts.push_back(count);
  }
  return counts;
}

/// On two ranks, a rank loads as much from the other without multicast. And a switch's rounding of
/// 16-bit sums, not to nearest, is within the reference's bound for more ranks (BoundedReduce),
/// whatever rounding the user admits.
bool MulticastPays(const ConfigSpace& space) {
  return space.multicast && space.any_order && space.ranks / space.nodes > 2;
}

/// A ring of two ranks is both of them. On the host a core reaches all memory alike, and a ring
/// moves more.
bool RingPays(const ConfigSpace& space) {
  return space.ring && space.any_order && space.ranks / space.nodes > 2;
}

/// The number of different ways to multiply. On hosts (runtime/host/gemm.h): with the second
/// operand as it is stored, or rearranged; and for f32 by the library's gemm, which below AVX-512
/// is what its matmul calls. There it has no products of 16 bits, whose operands are widened as
/// they are stored.
int GemmWaysOf(const Schedule& s, const ConfigSpace& space) {
  if (!Multiplies(s)) return 1;
  if (space.multiprocessors > 0) return std::min(space.gemm_candidates, kMostGemmCandidates);
  const bool wide = space.vector_bytes >= 64;
  const bool of_f32 = absl::c_any_of(s.launches().list, [&](const Launch& launch) {
    return Is<MatMul>(s.graph(), launch.nodes[0]) && s.type(launch.nodes[0]).dtype == DType::kF32;
  });
  return 1 + (of_f32 || wide) + (of_f32 && wide);
}

std::vector<Config> Configs(const Schedule& s, const ConfigSpace& space) {
  const Traits t = TraitsOf(s, space.ranks);
  const std::vector<Protocol> protocols = ProtocolsOf(t, space);
  const bool gpu = space.multiprocessors > 0;
  const KernelWork work{t.elements, t.elements / space.ranks, t.chunk_flags, t.widest,
                        std::min(t.narrowest, t.widest)};
  const std::vector<LaunchShape> shapes =
      gpu ? LaunchShapesOnGpu(work, space.multiprocessors)
          : LaunchShapesOnHost(work, space.vector_bytes,
                               space.cores / std::max(space.ranks / space.nodes, 1));
  std::vector<Streaming> streamings = {Streaming::kNone};
  if (t.bytes * space.ranks >= kStreamingBytes) {
    const bool reaches_peers = !s.kernels().empty() && (space.ranks > space.nodes || t.fused_sends);
    if (reaches_peers && !gpu)
      streamings.push_back(Streaming::kShared);  // a GPU's caches are kept out of no peer's way
    streamings.push_back(Streaming::kAll);
  }
  std::vector<std::pair<int, bool>> pieces;  // how many, and whether these are columns
  for (int count : PieceCounts(s, t, space, /*columns=*/false)) pieces.emplace_back(count, false);
  // A GPU multiplies some rows as fast as some columns, and these are packed for a library.
  if (!gpu) {
    for (int count : PieceCounts(s, t, space, /*columns=*/true)) pieces.emplace_back(count, true);
  }
  const bool exchanges = Exchanges(s);
  // On a host's node a library's collective takes the core that its rank computes on.
  const bool beside_pays = gpu || space.nodes > 1 || t.sends;
  std::vector<int64_t> batches = {0};
  for (int64_t batch : kBatches) {
    if (t.folds_and_uses && t.elements / space.ranks > 2 * batch) batches.push_back(batch);
  }
  std::vector<Config> configs, ways;  // of overlaps to communicate
  for (Protocol protocol : protocols) {
    const bool all_reduces =
        space.nodes == 1 &&
        (t.fused_all_reduce || (t.unfused_all_reduce && protocol == Protocol::kGenerated));
    std::vector<OneShot> one_shots = {OneShot::kPull};
    const bool copies = all_reduces && s.overlaps().empty() && space.ranks > 1;
    if (copies && t.all_reduce_bytes <= kStagedBytes) one_shots.push_back(OneShot::kStaged);
    if (copies && t.all_reduce_bytes <= kLLBytes) one_shots.push_back(OneShot::kLL);
    const bool slices = t.fused_slices || (t.unfused_slices && protocol == Protocol::kGenerated);
    const bool multicasts = MulticastPays(space) && slices,
               rings = RingPays(space) && slices && s.overlaps().empty();
    const bool copies_in_bulk = space.bulk && t.unfused_gathers && protocol == Protocol::kGenerated;
    ways.push_back({.protocol = protocol});
    if (multicasts) ways.push_back({.protocol = protocol, .multicast = true});
    for (const auto& [vec, unroll, chunk, blocks, threads] : shapes) {
      for (Streaming streaming : streamings) {
        for (OneShot one_shot : one_shots) {
          for (const auto& [count, columns] : pieces) {
            for (int64_t batch : batches) {
              Config config{protocol, vec,   chunk, blocks, streaming,
                            one_shot, count, batch, threads};
              config.columns = columns;
              config.unroll = unroll;
              configs.push_back(config);
              if (multicasts && streaming == Streaming::kNone)
                configs.emplace_back(config).multicast = true;
              if (rings && streaming == Streaming::kNone) configs.emplace_back(config).ring = true;
              if (copies_in_bulk && streaming == Streaming::kNone)
                configs.emplace_back(config).bulk = true;
              if (exchanges && space.ranks > 1) configs.emplace_back(config).remote_first = true;
              // Twice the loads in flight, where the memory is what a step waits for.
              if (streaming != Streaming::kNone && !gpu) configs.emplace_back(config).vec = 2 * vec;
            }
          }
        }
      }
    }
  }
  if (beside_pays) {
    for (Protocol protocol : protocols) {
      if (!HasConcurrency(s, protocol, space.nodes)) continue;
      std::vector<int64_t> buckets = {0};
      for (int64_t bucket : kBuckets) {
        if (s.buckets().empty() && t.all_reduces_bytes > bucket / 2) buckets.push_back(bucket);
      }
      const size_t plain = configs.size();
      for (int64_t bucket : buckets) {
        for (size_t i = 0; i < plain; ++i) {
          if (configs[i].protocol != protocol || configs[i].concurrent) continue;
          configs.emplace_back(configs[i]).concurrent = true;
          configs.back().bucket = bucket;
        }
      }
    }
  }
  if (gpu) AddBesides(s, space, configs);
  const int gemms = GemmWaysOf(s, space);
  const size_t plain = configs.size();
  // Below AVX-512 to rearrange means to leave no gaps between rows, as columns of others have.
  const bool columns_only = !gpu && space.vector_bytes < 64;
  for (int gemm = 1; gemm < gemms; ++gemm) {
    for (size_t i = 0; i < plain; ++i) {
      if (!columns_only || configs[i].columns) configs.emplace_back(configs[i]).gemm = gemm;
    }
  }
  if (gpu) AddTiles(s, space, ways, shapes, configs);
  return configs;
}

absl::Status Validate(const Config& c, const Schedule& s, const ConfigSpace& space) {
  const auto error = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("config \"", Text(c), "\": ", what));
  };
  if (c.vec < 1 || c.vec > 64 || (c.vec & (c.vec - 1)) != 0)
    return error("want vec a power of two in 1..64");
  if (c.chunk < c.vec || c.chunk > kMaxChunk || c.chunk % c.vec != 0)
    return error(absl::StrCat("want chunk a multiple of vec, at most ", kMaxChunk));
  if (c.blocks < 1 || c.blocks > kMaxBlocks)
    return error(absl::StrCat("want blocks in 1..", kMaxBlocks));
  if (c.threads != 1 &&
      (c.threads < kWarpThreads || c.threads > kMaxThreads || c.threads % kWarpThreads != 0)) {
    return error(
        absl::StrCat("want threads a multiple of ", kWarpThreads, ", at most ", kMaxThreads));
  }
  if (c.unroll < 1 || c.unroll > 16 || (c.unroll & (c.unroll - 1)) != 0)
    return error("want unroll a power of two in 1..16");
  if (const std::string no = WhyNoTiles(c, s, space.nodes); !no.empty()) return error(no);
  if (c.pieces < 1 || c.pieces > kMaxPieces ||
      (c.pieces == 1) != (s.overlaps().empty() || c.tiles > 0)) {
    return error(
        absl::StrCat("want pieces=2 to ", kMaxPieces, " for a schedule with overlaps, else 1"));
  }
  if (c.columns && (c.pieces == 1 || space.multiprocessors > 0))
    return error("want columns=1 for pieces of an overlap only, on hosts");
  if (c.batch < 0) return error("want batch 0, or so many elements");
  if (c.gemm < 0 || c.gemm >= (Multiplies(s) ? kMostGemmCandidates : 1)) {
    return error(absl::StrCat("want gemm in 0..", kMostGemmCandidates - 1,
                              " for a schedule with matrix products, else 0"));
  }
  if (c.multicast && !space.any_order) return error("a switch does not sum in rank order");
  if (c.ring && !space.any_order) return error("a ring does not sum in rank order");
  if (c.multicast + c.ring + c.bulk > 1) return error("want one of multicast=1, ring=1 and bulk=1");
  if (c.ring && !s.overlaps().empty()) return error("an overlap has no ring");
  if (c.beside < 0 || c.beside > kMaxBlocks ||
      (c.beside > 0 && !CommunicatesBeside(s, c.protocol, space.nodes))) {
    return error(absl::StrCat(
        "want beside in 0..", kMaxBlocks,
        " for a schedule that overlaps a product with collectives by kernels, else 0"));
  }
  if (space.multiprocessors > 0 && c.beside >= space.multiprocessors) {
    return error(absl::StrCat("want beside below ", space.multiprocessors,
                              ", the multiprocessors that a rank has"));
  }
  if (!s.overlaps().empty() && c.one_shot != OneShot::kPull)
    return error("an overlap has no one-shot but by pull");
  for (const std::vector<NodeId>& overlap : s.overlaps()) {
    if (LeftToLibrary(c.protocol, space.nodes) == LibraryDoes::kNone &&
        ChunksOf(s, overlap).space.exchanges)
      return error("a kernel does an AllToAll at once; want a library in an overlap of one");
    if (absl::Status fit = CountPieces(s, overlap, space.ranks, c.pieces, c.columns).status();
        c.tiles == 0 && !fit.ok())
      return error(fit.message());
  }
  const Traits t = TraitsOf(s, space.ranks);
  if (c.remote_first && !Exchanges(s))
    return error("want no remote-first where no kernel computes what an AllToAll of it takes");
  if (c.bucket < 0 || (c.bucket > 0 && !c.concurrent))
    return error("want bucket 0, or so many bytes with concurrent=1");
  if (c.bucket > 0 && !s.buckets().empty())
    return error("want bucket 0 for a schedule with buckets of its own");
  if (c.concurrent && !HasConcurrency(s, c.protocol, space.nodes)) {
    return error(
        "want concurrent=1 only where a library does a collective that is in no overlap, and there "
        "is something to compute meanwhile");
  }
  if (c.batch > 0 && !t.folds_and_uses)
    return error(
        "want batch=0 where no kernel sums up each tensor of a list and goes on with the sums");
  const absl::string_view why = WhyNot(c.protocol, t, space);
  return why.empty() ? absl::OkStatus() : error(why);
}

}  // namespace coconet
