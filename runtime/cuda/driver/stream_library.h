#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/control/board.h"
#include "runtime/cuda/driver/driver_api.h"
#include "runtime/mesh.h"
#include "runtime/plan.h"
#include "runtime/rank.h"

namespace coconet {

/// Library collectives that run in streams, between ranks with a GPU each; on device memory. One
/// per rank and lane, used by that rank's thread.
class StreamLibrary {
 public:
  virtual ~StreamLibrary() = default;
  /// True when the library computes `step` as CollectiveStep requires.
  virtual bool Takes(const CollectiveStep& step) const = 0;
  /// Multiprocessors that a collective may hold while its blocks wait for peers.
  virtual int multiprocessors() const = 0;
  /// Enqueues `step`; requires Takes(step). While it connects to peers it may wait for them, until
  /// the deadline at most or until `stopped` returns true.
  virtual absl::Status Enqueue(const CollectiveStep& step, const void* in, void* out,
                               CUstream stream, const std::function<bool()>& stopped) = 0;
  /// OK unless an enqueued collective has failed.
  virtual absl::Status Check() = 0;
  /// Aborts the communicators: enqueued collectives end, whatever peers do, and later calls fail
  /// with `why`.
  virtual void Abort(const absl::Status& why) = 0;
};

/// The arguments for opening stream libraries.
struct StreamLibraryTerms {
  const DriverApi& driver;
  int rank;
  Mesh mesh;
  Exchange& exchange;
  Board board;
  double timeout_s;
};

/// Memory that a library shares between ranks with a GPU each.
struct MemoryWindow {
  /// By world rank, for this rank's kernels; null for ranks that share no memory with this one.
  std::vector<void*> addresses;
  /// Frees this rank's memory and unmaps its peers'. To be called before the
  /// MemoryWindows is destroyed.
  std::function<void()> close;
};
class MemoryWindows {
 public:
  virtual ~MemoryWindows() = default;
  /// Collective; requires the same `bytes` > 0 on all ranks. On failure the first error,
  /// on all ranks.
  virtual absl::StatusOr<MemoryWindow> Open(int64_t bytes) = 0;
};
/// Collective; the rank's device must be current. Opens windows between the ranks that share memory
/// with this one. A failure on one rank is an error on all.
using OpenMemoryWindows =
    std::function<absl::StatusOr<std::unique_ptr<MemoryWindows>>(const StreamLibraryTerms&)>;

/// Stream libraries by lane; null if collectives go by way of the host.
struct StreamLibraries {
  std::array<std::shared_ptr<StreamLibrary>, kLanes> of_lane;
  std::string name = "staged";          // name and version (Topology::library)
  std::string note;                     // if staged: the reason
  OpenMemoryWindows open_windows = {};  // set if the library can also share memory
};

/// Collective; the rank's device must be current. A failure on one rank leaves all ranks without
/// libraries, and the note says why; returns an error only if the exchange fails.
using OpenStreamLibraries =
    std::function<absl::StatusOr<StreamLibraries>(const StreamLibraryTerms&)>;

/// Collective. The text of the first rank that passes one, as "rank N: text"; "" if none does.
absl::StatusOr<std::string> FirstNote(Exchange& exchange, absl::string_view mine);

}  // namespace coconet
