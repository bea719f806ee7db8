#include "runtime/host/rank_place.h"

#include <utility>

#include "runtime/host/cpu.h"

namespace coconet {

absl::StatusOr<std::unique_ptr<Rank>> MakeHostRank(RankPlace place) {
  const Topology topology{.device = CpuName(),
                          .library = place.library,
                          .nodes = place.mesh.stages * place.mesh.nodes,
                          .ranks_per_node = place.mesh.ranks,
                          .cores = static_cast<int>(place.cores.size())};
  return std::make_unique<HostRank>(HostRank::Parts{.rank = place.rank,
                                                    .mesh = place.mesh,
                                                    .machine_rank = place.machine_rank,
                                                    .machine_ranks = place.machine_ranks,
                                                    .topology = topology,
                                                    .cores = place.cores,
                                                    .pin = place.pin,
                                                    .timeout_s = place.timeout_s,
                                                    .exchange = std::move(place.exchange),
                                                    .libraries = std::move(place.libraries),
                                                    .library_threads = place.library_threads,
                                                    .sharing = std::move(place.sharing),
                                                    .board = place.board});
}

}  // namespace coconet
