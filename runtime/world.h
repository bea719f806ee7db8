#ifndef COCONET_RUNTIME_WORLD_H_
#define COCONET_RUNTIME_WORLD_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "runtime/rank.h"
#include "runtime/simt_options.h"

namespace coconet {

/// What ranks run on.
enum class Backend : uint8_t {
  kHost,  // cores, and their memory
  kCuda,  // NVIDIA GPUs, in turns: with more ranks than GPUs several share one
  kSimt,  // GPUs that are simulated thread for thread, one a rank, and report mistakes of kernels:
          // for small sizes
};

struct WorldOptions {
  /// Thread ranks of one process. Ignored under mpirun, where each process is one rank (0 = take
  /// mpirun's, or 1).
  int ranks = 0;
  /// Equal parts of the world, one after another; collectives span one of them.
  int stages = 1;
  /// Of the whole world; 0: as many as there are machines (threads: one). More than that: virtual
  /// ones, whose ranks do not see the memory of other nodes.
  int nodes = 0;
  /// Deadline of one wait for a peer, seconds; <= 0: COCONET_TIMEOUT.
  double timeout_s = 0;
  Backend backend = Backend::kHost;
  std::optional<SimtOptions> simt =
      std::nullopt;  // of Backend::kSimt; nullopt: the interleaving of COCONET_SIMT_SEED
  bool pin = true;   // rank i to the i-th core that this node's ranks may run on, modulo
};

/// True when this process was started by an MPI launcher.
bool UnderMpi();

/// Runs `body` once a rank and returns when all ranks of this process are done: OK, or the first
/// error by rank, those that only followed from a peer's (Aborted) last. Without MPI,
/// `options.ranks` threads, created and pinned here. Under an MPI launcher, this process's rank, on
/// the calling thread; MPI_Init is called only if nobody has, and then MPI_Finalize when the
/// process exits. A rank whose body returns an error leaves the world, so the others' waits end
/// instead of timing out. Unavailable, with what is missing, where the backend is not here. Nothing
/// is left behind: no threads, handles or memory.
absl::Status RunWorld(const WorldOptions& options, const std::function<absl::Status(Rank&)>& body);

}  // namespace coconet

#endif  // COCONET_RUNTIME_WORLD_H_
