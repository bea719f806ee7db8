#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace coconet {

/// The byte streams that one rank sends and receives in one operation, concurrently; at most one
/// per direction and peer.
struct Streams {
  struct Out {
    int peer;
    const char* data;  // null: Fill gives the bytes
    int64_t bytes;
  };
  struct In {
    int peer;
    int64_t bytes;
  };
  /// The most streams per direction of any rank in this operation. Must be the same on all its
  /// ranks, because it determines the message size.
  int width = 1;
  std::vector<Out> outs = {};
  std::vector<In> ins = {};

  /// Removes all streams and sets the width; keeps the memory.
  void Clear(int new_width) {
    width = new_width;
    outs.clear();
    ins.clear();
  }
};

/// Messages between ranks that do not address each other's memory. One call at a time.
class PeerTraffic {
 public:
  virtual ~PeerTraffic() = default;
  /// As Communicator::name.
  virtual absl::string_view name() const = 0;
  /// As Communicator::Announce.
  void Announce(uint64_t step) { step_ = step; }

  /// `take(begin, pieces)` receives the bytes from `begin` on of each stream in `ins`; called piece
  /// by piece. A stream that has ended has an empty piece.
  using Take =
      absl::FunctionRef<void(int64_t begin, absl::Span<const absl::Span<const char>> pieces)>;

  /// `fill(stream, begin, place)` stores the bytes from `begin` on of a stream in `outs`, as many
  /// as `place` has.
  using Fill = absl::FunctionRef<void(size_t stream, int64_t begin, absl::Span<char> place)>;

  /// Returns when everything has been sent and taken. `what` names the operation. DeadlineExceeded
  /// when a peer makes no progress until the deadline, Aborted when a rank has left; then this rank
  /// leaves and every later call fails.
  virtual absl::Status Move(absl::string_view what, const Streams& streams, Fill fill,
                            Take take) = 0;
  /// The same, of streams that all have their data.
  absl::Status Move(absl::string_view what, const Streams& streams, Take take) {
    return Move(what, streams, [](size_t, int64_t, absl::Span<char>) {}, take);
  }

 protected:
  uint64_t step_ = 0;
};

}  // namespace coconet
