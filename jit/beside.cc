#include "jit/beside.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "coconet/chunks.h"
#include "coconet/steps.h"

namespace coconet {
namespace {

/// What collectives beside products are worth of a rank's multiprocessors: they wait for memory and for peers, which few of them keep busy.
std::vector<int> Besides(int multiprocessors) {
  std::vector<int> tried;
  for (int part : {8, 4}) {
    const int beside = std::max(multiprocessors / part, 1);
    if (beside < multiprocessors && (tried.empty() || beside != tried.back())) tried.push_back(beside);
  }
  return tried;
}

}  // namespace

bool CommunicatesBeside(const Schedule& s, Protocol protocol, int nodes) {
  if (s.overlaps.empty()) return false;
  const LibraryDoes library = LeftToLibrary(protocol, nodes);
  const Steps steps = FindSteps(s.graph, s.kernels);
  const auto by_kernel = [&](NodeId id) {
    if (!Communicates(s.graph, id)) return false;
    const bool fused = absl::c_any_of(s.kernels, [&](const std::vector<NodeId>& kernel) { return absl::c_binary_search(kernel, id); });
    const bool left = library == LibraryDoes::kAll || (library == LibraryDoes::kOverAllRanks && SpanOf(s.graph.nodes[id].op) != Span::kNode);
    return fused || (IsKernelWork(s.graph, id) && !left);
  };
  return absl::c_any_of(s.overlaps, [&](const std::vector<NodeId>& overlap) {
    const bool communicates = absl::c_any_of(overlap, [&](NodeId first) { return absl::c_any_of(steps.nodes[steps.of[first]], by_kernel); });
    return communicates && ChunksOf(s, overlap).space.has_product;
  });
}

void AddBesides(const Schedule& s, const ConfigSpace& space, std::vector<Config>& configs) {
  const auto does = [&](Protocol protocol) { return CommunicatesBeside(s, protocol, space.nodes); };
  const bool by_library = does(Protocol::kLibrary), generated = does(Protocol::kGenerated);
  const size_t plain = configs.size();
  for (int beside : Besides(space.multiprocessors)) {
    std::map<std::pair<int, int>, int> blocks;  // by vec and threads
    for (size_t i = 0; i < plain; ++i) {
      const Config config = configs[i];
      if (config.protocol == Protocol::kLibrary ? !by_library : !generated) continue;
      if (blocks.try_emplace({config.vec, config.threads}, config.blocks).first->second != config.blocks) continue;
      configs.emplace_back(config).beside = beside;
    }
  }
}

}  // namespace coconet
