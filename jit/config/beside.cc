#include "jit/config/beside.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/schedule/chunks.h"

namespace coconet {
namespace {

/// Numbers of a rank's multiprocessors worth giving to collectives beside products: these wait for
/// memory and for peers, which a few multiprocessors keep busy.
std::vector<int> Besides(int multiprocessors) {
  std::vector<int> tried;
  for (int part : {8, 4}) {
    const int beside = std::max(multiprocessors / part, 1);
    if (beside < multiprocessors && (tried.empty() || beside != tried.back()))
      tried.push_back(beside);
  }
  return tried;
}

/// Whether a kernel does some collective of a launch.
bool CommunicatesByKernel(const Schedule& s, const std::vector<NodeId>& launch,
                          LibraryDoes library) {
  return absl::c_any_of(launch, [&](NodeId id) {
    if (!s.program().communicates(id)) return false;
    const bool fused = absl::c_any_of(s.kernels(), [&](const std::vector<NodeId>& kernel) {
      return absl::c_binary_search(kernel, id);
    });
    const bool left = library == LibraryDoes::kAll || (library == LibraryDoes::kOverAllRanks &&
                                                       s.program().span(id) != Span::kNode);
    return fused || (s.program().is_kernel_work(id) && !left);
  });
}

/// Rows and columns of tiles: more take less of the operands, fewer let more of them begin.
constexpr int kTileSides[] = {128, 64};

}  // namespace

bool CommunicatesBeside(const Schedule& s, Protocol protocol, int nodes) {
  if (s.overlaps().empty()) return false;
  return absl::c_any_of(s.overlaps(), [&](const std::vector<NodeId>& overlap) {
    const bool communicates = absl::c_any_of(overlap, [&](NodeId first) {
      return CommunicatesByKernel(s, s.launch(first).nodes, LeftToLibrary(protocol, nodes));
    });
    return communicates && ChunksOf(s, overlap).space.has_product;
  });
}

bool TakesTiles(const Schedule& s, Protocol protocol, int nodes) {
  if (s.overlaps().empty() || !s.graph().lists.empty()) return false;
  const auto nodes_of = [&](NodeId first) -> const std::vector<NodeId>& {
    return s.launch(first).nodes;
  };
  return absl::c_all_of(s.overlaps(), [&](const std::vector<NodeId>& overlap) {
    if (ChunksOf(s, overlap).space.lead) return false;  // tiles are of one matrix
    for (size_t at = 0; at + 1 < overlap.size(); ++at) {
      const bool multiplies = As<MatMul>(s.graph(), overlap[at]) != nullptr;
      if (multiplies &&
          CommunicatesByKernel(s, nodes_of(overlap[at + 1]), LeftToLibrary(protocol, nodes)))
        return true;
    }
    return false;
  });
}

std::string WhyNoTiles(const Config& config, const Schedule& s, int nodes) {
  if (config.tiles == 0) return "";
  if (!absl::c_linear_search(kTileSides, config.tiles))
    return absl::StrCat("want tiles of ", absl::StrJoin(kTileSides, " or "), ", or 0");
  if (config.beside == 0 || config.pieces != 1)
    return "want beside=M and no pieces where a product tells of its tiles";
  return TakesTiles(s, config.protocol, nodes) ? ""
                                               : "want tiles=0 where an overlap does not go from a "
                                                 "product to a kernel that communicates";
}

void AddBesides(const Schedule& s, const ConfigSpace& space, std::vector<Config>& configs) {
  const auto does = [&](Protocol protocol) { return CommunicatesBeside(s, protocol, space.nodes); };
  const bool by_library = does(Protocol::kLibrary), generated = does(Protocol::kGenerated);
  const size_t plain = configs.size();
  for (int beside : Besides(space.multiprocessors)) {
    std::map<std::tuple<int, int, int>, int> blocks;  // by vec, unroll and threads
    for (size_t i = 0; i < plain; ++i) {
      const Config config = configs[i];
      if (config.protocol == Protocol::kLibrary ? !by_library : !generated) continue;
      if (config.blocks > space.multiprocessors) continue;  // blocks are `beside`
      const auto [first, is_new] =
          blocks.try_emplace({config.vec, config.unroll, config.threads}, config.blocks);
      if (first->second != config.blocks) continue;
      configs.emplace_back(config).beside = beside;
    }
  }
}

void AddTiles(const Schedule& s, const ConfigSpace& space, const std::vector<Config>& ways,
              const std::vector<LaunchShape>& shapes, std::vector<Config>& configs) {
  for (const Config& way : ways) {
    if (!TakesTiles(s, way.protocol, space.nodes)) continue;
    for (int beside : Besides(space.multiprocessors)) {
      std::set<std::tuple<int, int, int64_t, int>> seen;  // blocks are the collective's, `beside`
      for (const LaunchShape& shape : shapes) {
        if (shape.threads > kTileThreads) continue;
        if (!seen.insert({shape.vec, shape.unroll, shape.chunk, shape.threads}).second) continue;
        const int blocks = 2 * (space.multiprocessors - beside);
        for (int side : kTileSides) {
          configs.push_back({.protocol = way.protocol,
                             .vec = shape.vec,
                             .chunk = shape.chunk,
                             .blocks = blocks,
                             .threads = shape.threads,
                             .multicast = way.multicast,
                             .beside = beside,
                             .tiles = side,
                             .unroll = shape.unroll});
        }
      }
    }
  }
}

}  // namespace coconet
