#ifndef COCONET_RUNTIME_HOST_THREAD_WORLD_H_
#define COCONET_RUNTIME_HOST_THREAD_WORLD_H_

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/host/board.h"
#include "runtime/host/host_rank.h"
#include "runtime/host/wait.h"
#include "runtime/mesh.h"
#include "runtime/rank.h"

namespace coconet {

/// Runs `body` on `ranks` threads of this process, each a rank; see RunWorld.
absl::Status RunThreadWorld(int ranks, const WorldShape& shape, double timeout_s, bool pin,
                            const std::function<absl::Status(Rank&)>& body);

/// What a rank that is a thread has of its world, whatever it computes on.
struct ThreadPlace {
  int rank = 0;
  Mesh mesh;
  std::vector<int> cores;  // of this machine, for all its ranks
  bool pin = true;
  WaitTerms terms;
  double timeout_s = 60;
  Board board;
  std::unique_ptr<Exchange> exchange;
  std::array<Libraries, kLanes> libraries;  // between host memory
};
/// Called on the rank's thread.
using MakeRank = std::function<absl::StatusOr<std::unique_ptr<Rank>>(ThreadPlace)>;
/// The same with ranks of any kind.
absl::Status RunOnThreads(int ranks, const WorldShape& shape, double timeout_s, bool pin, const MakeRank& make,
                          const std::function<absl::Status(Rank&)>& body);

}  // namespace coconet

#endif  // COCONET_RUNTIME_HOST_THREAD_WORLD_H_
