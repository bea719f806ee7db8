#ifndef COCONET_RUNTIME_CUDA_DRIVER_STREAM_LIBRARY_H_
#define COCONET_RUNTIME_CUDA_DRIVER_STREAM_LIBRARY_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/mesh.h"
#include "runtime/node/board.h"
#include "runtime/plan.h"
#include "runtime/rank.h"

namespace coconet {

/// Library collectives that streams do, between ranks with a GPU each: on device memory, enqueued
/// as kernels are. One a rank and lane, used by that rank's thread.
class StreamLibrary {
 public:
  virtual ~StreamLibrary() = default;
  /// Whether it does `step` as plans mean it.
  virtual bool Takes(const CollectiveStep& step) const = 0;
  /// Multiprocessors that a collective may take, whose blocks wait for peers.
  virtual int multiprocessors() const = 0;
  /// Enqueues `step`, which it takes. May wait for peers, at most the deadline, while it connects
  /// to them; `stopped` ends that.
  virtual absl::Status Enqueue(const CollectiveStep& step, const void* in, void* out,
                               CUstream stream, const std::function<bool()>& stopped) = 0;
  /// OK unless something that was enqueued has failed.
  virtual absl::Status Check() = 0;
  /// What is enqueued ends, whatever the peers do; later calls fail because of `why`.
  virtual void Abort(const absl::Status& why) = 0;
};

/// What one needs to open them.
struct StreamLibraryTerms {
  const DriverApi& driver;
  int rank;
  Mesh mesh;
  Exchange& exchange;
  Board board;
  double timeout_s;
};

/// Memory that a library has shared between ranks with a GPU each.
struct MemoryWindow {
  std::vector<void*>
      addresses;  // by world rank, for this rank's kernels; null for those that share none with it
  std::function<void()> close;  // gives this rank's memory back, and its peers' addresses; before
                                // the windows are destroyed
};
class MemoryWindows {
 public:
  virtual ~MemoryWindows() = default;
  /// Collective; the ranks agree on `bytes`, more than 0. On all ranks, or the first error of one
  /// on all.
  virtual absl::StatusOr<MemoryWindow> Open(int64_t bytes) = 0;
};
/// Collective; the calling thread's device is the rank's. Between the ranks that share memory with
/// this one; where it does not succeed on some rank, an error on all.
using OpenMemoryWindows =
    std::function<absl::StatusOr<std::unique_ptr<MemoryWindows>>(const StreamLibraryTerms&)>;

/// By lane; null where collectives go by way of the host.
struct StreamLibraries {
  std::array<std::shared_ptr<StreamLibrary>, kLanes> of_lane;
  std::string name = "staged";          // and version, as in Topology
  std::string note;                     // where they are staged, why
  OpenMemoryWindows open_windows = {};  // where the library can share memory, too
};

/// Collective; the calling thread's device is the rank's. Where it does not succeed on some rank,
/// none has one, and the note says why; an error is one of the exchange alone.
using OpenStreamLibraries =
    std::function<absl::StatusOr<StreamLibraries>(const StreamLibraryTerms&)>;

/// Collective. What the first rank that passes a text passes, as "rank N: text"; "" where none
/// does.
absl::StatusOr<std::string> FirstNote(Exchange& exchange, absl::string_view mine);

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_DRIVER_STREAM_LIBRARY_H_
