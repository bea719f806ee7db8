#ifndef COCONET_RUNTIME_MPI_COLLECTIVES_MPI_TRAFFIC_H_
#define COCONET_RUNTIME_MPI_COLLECTIVES_MPI_TRAFFIC_H_

#include <mpi.h>

#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "runtime/mpi/collectives/mpi_farewells.h"
#include "runtime/node/board.h"

namespace coconet {

/// What one rank sends and receives at once: streams of bytes, one each way to a peer at most, all
/// from the start to their ends side by side.
struct Streams {
  struct Out {
    int peer;
    const char* data;
    int64_t bytes;
  };
  struct In {
    int peer;
    int64_t bytes;
  };
  /// The most streams one way that a rank has in this operation; the same on all its ranks, since
  /// it decides about the size of messages.
  int width = 1;
  std::vector<Out> outs = {};
  std::vector<In> ins = {};

  /// None of this width, yet; keeps memory.
  void Clear(int new_width) {
    width = new_width;
    outs.clear();
    ins.clear();
  }
};

/// Messages between ranks that may be on different nodes, with sleeps instead of waits: over a link
/// of 2 Gbit/s, an AllReduce of 16 MiB by two of them takes 77 ms, 12 ms of them on the processor,
/// where MPI_Allreduce takes 71 to 107 ms, all on the processor, and MPI_Iallreduce with the same
/// sleeps 140 ms. MPI only ever reads and writes memory of this object, which after a failure, when
/// messages cannot be taken back, is kept until the process ends.
class MpiTraffic {
 public:
  /// Uses messages of `comm` with `tag`, alone. `most`: the largest width. A rank that leaves,
  /// which `board` says, ends waits at once.
  MpiTraffic(MPI_Comm comm, int tag, int rank, int most, double timeout_s, Board board,
             Hearsay hearsay);
  ~MpiTraffic();
  MpiTraffic(const MpiTraffic&) = delete;
  MpiTraffic& operator=(const MpiTraffic&) = delete;

  /// `take(begin, pieces)`: the bytes from `begin` on of each stream in `ins`; called for piece
  /// after piece, in which streams that have ended are empty.
  using Take =
      absl::FunctionRef<void(int64_t begin, absl::Span<const absl::Span<const char>> pieces)>;

  /// Returns when all has been sent and taken. `what` names the operation. DeadlineExceeded when a
  /// peer does nothing for the timeout and a quarter, Aborted when a rank has left; then this rank
  /// leaves, and every later call fails.
  absl::Status Move(absl::string_view what, const Streams& streams, Take take);

 private:
  struct Depot;   // memory and requests that MPI uses
  struct Course;  // of one Move
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

#endif  // COCONET_RUNTIME_MPI_COLLECTIVES_MPI_TRAFFIC_H_
