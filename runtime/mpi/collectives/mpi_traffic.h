#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/mpi/collectives/mpi_farewells.h"
#include "runtime/node/board.h"

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

/// Messages between ranks that may be on different nodes. Waits sleep: over a link of 2 Gbit/s, an
/// AllReduce of 16 MiB between two ranks takes 77 ms, of which 12 ms are processor time;
/// MPI_Allreduce takes 71 to 107 ms, all of it processor time, and MPI_Iallreduce with the same
/// sleeps 140 ms. MPI only accesses memory of this object; after a failure, when messages cannot be
/// cancelled, that memory is leaked.
class MpiTraffic {
 public:
  /// Sends messages in `comm` with `tag`, which must have no other user. `most`: the largest width.
  /// Waits end at once when `board` says that a rank has left.
  MpiTraffic(MPI_Comm comm, int tag, int rank, int most, double timeout_s, Board board,
             Hearsay hearsay);
  ~MpiTraffic();

  /// `take(begin, pieces)` receives the bytes from `begin` on of each stream in `ins`; called piece
  /// by piece. A stream that has ended has an empty piece.
  using Take =
      absl::FunctionRef<void(int64_t begin, absl::Span<const absl::Span<const char>> pieces)>;

  /// `fill(stream, begin, place)` stores the bytes from `begin` on of a stream in `outs`, as many
  /// as `place` has.
  using Fill = absl::FunctionRef<void(size_t stream, int64_t begin, absl::Span<char> place)>;

  /// Returns when everything has been sent and taken. `what` names the operation. DeadlineExceeded
  /// when a peer makes no progress for 1.25 times the timeout, Aborted when a rank has left; then
  /// this rank leaves and every later call fails.
  absl::Status Move(absl::string_view what, const Streams& streams, Fill fill, Take take);
  /// The same, of streams that all have their data.
  absl::Status Move(absl::string_view what, const Streams& streams, Take take);

 private:
  struct Depot;   // buffers and requests that MPI uses
  struct Course;  // the state of one Move
  absl::Status Failed(absl::string_view what, const absl::Status& why);

  MPI_Comm comm_;
  int tag_;
  int rank_;
  int64_t timeout_ns_;
  Board board_;
  Hearsay hearsay_;
  std::unique_ptr<Depot> depot_;
  absl::Status first_error_;
};

}  // namespace coconet
