#ifndef COCONET_RUNTIME_MPI_COLLECTIVES_MPI_NODE_COMMUNICATOR_H_
#define COCONET_RUNTIME_MPI_COLLECTIVES_MPI_NODE_COMMUNICATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/mesh.h"
#include "runtime/mpi/collectives/mpi_sender.h"
#include "runtime/node/board.h"
#include "runtime/node/memory.h"
#include "runtime/node/wait.h"

namespace coconet {

/// Memory in which the ranks of a group show each other what they communicate, window after window,
/// and the order in which they do. Only memory of the library is shared: a rank that gives up
/// leaves nobody at its user's tensors, and one that has read a peer's window has data that were
/// there before the peer said so.
class Stage {
 public:
  /// Of one rank: counters, then two halves for what it shows, used in turn, then two for what it
  /// reduced.
  static constexpr int64_t kBytes = int64_t{2} << 20;
  static constexpr int64_t kCounterBytes = 4096;
  static constexpr int64_t kWindow =
      (kBytes - kCounterBytes) / 4;  // of 64 KiB to 1 MiB, the fastest from 4 MB on

  /// `regions`: kBytes of each rank of the group at `offset` of its own, by world rank,
  /// zero-filled.
  Stage(std::vector<std::shared_ptr<Region>> regions, int64_t offset, const Members& group,
        int rank, Board board, WaitTerms terms);

  /// Begins the next window: its halves are free again.
  void Next() { ++epoch_; }
  /// What `index` of the group shows in this window, and what it reduced.
  char* Shown(int index) const { return Half(index, 0); }
  char* Reduced(int index) const { return Half(index, 1); }
  /// This rank's is there; returns when all ranks' are. On failure this rank has left, as AwaitPeer
  /// says.
  absl::Status AwaitShown(absl::string_view what) { return Meet(what, &Counters::shown); }
  absl::Status AwaitReduced(absl::string_view what) { return Meet(what, &Counters::reduced); }

  const Board& board() const { return board_; }

 private:
  struct Counters {
    alignas(64) std::atomic<unsigned> shown;
    alignas(64) std::atomic<unsigned> reduced;
  };
  char* Half(int index, int which) const {
    return bases_[index] + kCounterBytes + (2 * which + static_cast<int64_t>(epoch_ % 2)) * kWindow;
  }
  absl::Status Meet(absl::string_view what, std::atomic<unsigned> Counters::* counter);

  std::vector<std::shared_ptr<Region>> regions_;
  std::vector<char*> bases_;  // by index in the group
  Members group_;
  int rank_;
  Board board_;
  WaitTerms terms_;
  unsigned epoch_ = 0;
};

/// The library tier between MPI processes of one machine. MPI's own collectives wait for ever for a
/// process that died in one, and then still hold the user's memory; these are through shared
/// memory, every wait of them has the deadline, and they are faster. Sums are in the order of
/// ranks.
class MpiNodeCommunicator final : public MpiSender {
 public:
  /// `stage`: null for a group of one rank.
  MpiNodeCommunicator(const Members& group, std::unique_ptr<Stage> stage,
                      std::unique_ptr<MpiTraffic> traffic, int rank, const Members& column);

  absl::string_view name() const override { return "shm"; }
  absl::Status AllReduce(const void* in, void* out, int64_t count, DType dtype,
                         ReduceKind kind) override;
  absl::Status ReduceScatter(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind,
                             int64_t stride) override;
  absl::Status AllGather(const void* in, void* out, int64_t count, DType dtype,
                         int64_t stride) override;
  absl::Status Broadcast(const void* in, void* out, int64_t count, DType dtype, int root) override;
  absl::Status Reduce(const void* in, void* out, int64_t count, DType dtype, ReduceKind kind,
                      int root) override;
  absl::Status AllToAll(const void* in, void* out, int64_t count, DType dtype) override;

 private:
  /// What a call moves: `blocks` blocks of `count` elements, of which a window has the same part
  /// each.
  struct Call {
    absl::string_view what;
    int64_t count;
    DType dtype;
    int blocks = 1;
    int64_t element = static_cast<int64_t>(SizeOf(dtype));
  };
  /// Elements of each block, from the first one's bytes `begin` on.
  struct Window {
    int64_t begin;  // elements
    int64_t count;
    int64_t bytes;  // of `count`
  };
  /// `show(window)` fills Shown(index_); once all ranks have, `take(window)` uses everybody's.
  absl::Status InWindows(const Call& call, absl::FunctionRef<void(const Window&)> show,
                         absl::FunctionRef<absl::Status(const Window&)> take);
  /// AllReduce, or, for a rank at least 0, Reduce to that.
  absl::Status ReduceAll(const Call& call, const char* in, char* out, ReduceKind kind, int root);

  int index_, size_;
  std::unique_ptr<Stage> stage_;
  std::vector<const void*> sources_;  // of the reduction under way; kept for its memory
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_COLLECTIVES_MPI_NODE_COMMUNICATOR_H_
