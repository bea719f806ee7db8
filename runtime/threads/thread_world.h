#ifndef COCONET_RUNTIME_THREADS_THREAD_WORLD_H_
#define COCONET_RUNTIME_THREADS_THREAD_WORLD_H_

#include <functional>

#include "absl/status/status.h"
#include "runtime/mesh.h"
#include "runtime/node/rank_place.h"
#include "runtime/rank.h"

namespace coconet {

/// Runs `body` on `ranks` threads of this process, one per rank; see RunWorld.
absl::Status RunThreadWorld(int ranks, const WorldShape& shape, double timeout_s, bool pin,
                            const std::function<absl::Status(Rank&)>& body);

/// The same for any kind of rank.
absl::Status RunOnThreads(int ranks, const WorldShape& shape, double timeout_s, bool pin,
                          const MakeRank& make, const std::function<absl::Status(Rank&)>& body);

}  // namespace coconet

#endif  // COCONET_RUNTIME_THREADS_THREAD_WORLD_H_
