#include "jit/config/config.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/schedule/chunks.h"
#include "coconet/schedule/overlapped_products.h"
#include "jit/config/beside.h"
#include "jit/config/config_traits.h"
#include "jit/config/launch_shapes.h"
#include "jit/launches/pieces.h"
#include "runtime/plan.h"

namespace coconet {
namespace {

constexpr int64_t kMaxChunk = int64_t{1} << 30;
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

/// The protocols that make variants of their own, the library first.
std::vector<Protocol> ProtocolsOf(const ConfigTraits& t, const ConfigSpace& space) {
  std::vector<Protocol> protocols;
  for (Protocol protocol : {Protocol::kLibrary, Protocol::kGenerated}) {
    const bool differs = protocol == Protocol::kLibrary || t.unfused_collective;
    if (differs && WhyNot(protocol, t, space).empty()) protocols.push_back(protocol);
  }
  return protocols;
}

}  // namespace

LibraryDoes LeftToLibrary(Protocol protocol, int nodes) {
  if (protocol == Protocol::kLibrary) return LibraryDoes::kAll;
  return nodes > 1 ? LibraryDoes::kOverAllRanks : LibraryDoes::kNone;
}

/// Numbers of pieces worth trying: 1 where the schedule overlaps nothing; none where nothing would
/// run beside anything else: kernels and products share the rank's core, so a collective of a
/// library must go out of the node, or pieces of a product stay in its cache. None where a kernel
/// of an overlap makes a product's tiles, where only warp groups can make those of a kernel, or
/// where a product LacksALibrary.
std::vector<int> PieceCounts(const Schedule& s, const ConfigTraits& t, const ConfigSpace& space,
                             bool columns) {
  if (TilesInKernels(s) || MultipliesByWarpGroups(s) ||
      LacksALibrary(s, space, /*tiles_overlaps=*/false)) {
    return {};
  }
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
    const NodeId id = launch.nodes[0];
    return Is<MatMul>(s.graph(), id) && s.type(s.program().inputs(id)[0]).dtype == DType::kF32;
  });
  return 1 + (of_f32 || wide) + (of_f32 && wide);
}

std::vector<Config> Configs(const Schedule& s, const ConfigSpace& space) {
  const ConfigTraits t = TraitsOf(s, space.ranks);
  const std::vector<Protocol> protocols = ProtocolsOf(t, space);
  const bool gpu = space.multiprocessors > 0;
  const KernelWork work{t.elements, t.elements / space.ranks, t.chunk_flags, t.widest,
                        std::min(t.narrowest, t.widest)};
  // On hosts a library's product is faster, and leaves it in a cache.
  if (!gpu && MultipliesInKernels(s)) return {};
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
    const bool copies = all_reduces && !OnlyPulls(s) && space.ranks > 1;
    if (copies && t.all_reduce_bytes <= kStagedBytes) one_shots.push_back(OneShot::kStaged);
    if (copies && t.all_reduce_bytes <= kLLBytes) one_shots.push_back(OneShot::kLL);
    const bool slices = t.fused_slices || (t.unfused_slices && protocol == Protocol::kGenerated);
    const bool multicasts = MulticastPays(space) && slices,
               rings = RingPays(space) && slices && !OnlyPulls(s);
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
  if (c.batch < 0) return error("want batch 0, or so many elements");
  if (c.multicast && !space.any_order) return error("a switch does not sum in rank order");
  if (c.ring && !space.any_order) return error("a ring does not sum in rank order");
  if (c.multicast + c.ring + c.bulk > 1) return error("want one of multicast=1, ring=1 and bulk=1");
  if (c.bucket < 0 || (c.bucket > 0 && !c.concurrent))
    return error("want bucket 0, or so many bytes with concurrent=1");
  if (space.multiprocessors > 0 && c.beside >= space.multiprocessors) {
    return error(absl::StrCat("want beside below ", space.multiprocessors,
                              ", the multiprocessors that a rank has"));
  }
  const std::string why = WhyNot(c, s, space);
  return why.empty() ? absl::OkStatus() : error(why);
}

}  // namespace coconet
