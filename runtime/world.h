#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "runtime/rank.h"
#include "runtime/simt_options.h"

namespace coconet {

/// The hardware that ranks run on.
enum class Backend : uint8_t {
  kHost,  // CPU cores
  kCuda,  // NVIDIA GPUs, dealt to ranks in turns: ranks share GPUs if there are more ranks than
          // GPUs
  kSimt,  // simulated GPUs, one per rank, that check every access of a kernel: for small sizes
};

struct WorldOptions {
  /// Ranks, as threads of this process; 0: 1. Ignored under mpirun, where each process is one rank.
  int ranks = 0;
  /// Pipeline stages: equal, consecutive parts of the world. Collectives span one of them.
  int stages = 1;
  /// Nodes of the whole world. 0: one per machine (threads: one). More: each machine is cut into
  /// virtual nodes, whose ranks do not address each other's memory.
  int nodes = 0;
  /// Deadline of one wait for a peer, in seconds; <= 0: COCONET_TIMEOUT.
  double timeout_s = 0;
  Backend backend = Backend::kHost;
  /// Backend::kSimt only; nullopt: the interleaving that COCONET_SIMT_SEED names.
  std::optional<SimtOptions> simt = std::nullopt;
  /// Pins rank i to core i of those that this node's ranks may run on, modulo their number.
  bool pin = true;
};

/// True when this process was started by an MPI launcher.
bool UnderMpi();

/// Runs `body` once per rank and returns when all ranks of this process are done: OK, or the first
/// error by rank; errors that follow from a peer's (Aborted) rank last. Without MPI the ranks are
/// `options.ranks` threads, created and pinned here. Under an MPI launcher the calling thread is
/// this process's rank; MPI_Init is called unless it already has been, and then MPI_Finalize at
/// exit. A rank whose body returns an error leaves the world, so that its peers' waits end at once.
/// Unavailable, naming what is missing, if the backend is not in the build or on the machine.
/// Leaves no threads, handles or memory behind.
absl::Status RunWorld(const WorldOptions& options, const RankBody& body);

}  // namespace coconet
