#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/mesh.h"
#include "runtime/node/board.h"
#include "runtime/node/memory.h"
#include "runtime/node/wait.h"
#include "runtime/processes/collectives/process_communicator.h"

namespace coconet {

/// Shared staging memory through which the ranks of a group communicate, window by window, and its
/// synchronisation. Only this memory is shared: after a rank gives up, no peer accesses the user's
/// tensors, and data read from a peer's window were complete when the peer published it.
class StagingBuffer {
 public:
  /// Bytes per rank of a collective's: counters, two halves for shown data (used alternately), and
  /// two for reduced data. Of windows from 64 KiB to 1 MiB, about 512 KiB was the fastest from 4 MB
  /// on.
  static constexpr int64_t kBytes = int64_t{2} << 20;
  static constexpr int64_t kCounterBytes = 4096;

  /// `regions`: by world rank; of each, `bytes` belong to this buffer, which begin at `offset`, a
  /// page, zero-filled. They need not be populated.
  StagingBuffer(std::vector<std::shared_ptr<Region>> regions, int64_t offset, int64_t bytes,
                const Members& group, int rank, Board board, WaitTerms terms);

  /// Populates this rank's part, once; to be called before the first window where the owner has
  /// not. On failure this rank leaves.
  absl::Status Populate();

  /// The most bytes that a rank shows, or reduces, at a time.
  int64_t window() const { return window_; }

  /// As Communicator::Announce.
  void Announce(uint64_t step) { step_ = step; }

  /// Begins the next window: its halves may be overwritten.
  void Next() { ++epoch_; }
  /// The data that rank `index` of the group shows in this window, and the data that it reduced.
  char* Shown(int index) const { return Half(index, 0); }
  char* Reduced(int index) const { return Half(index, 1); }
  /// Publishes this rank's data, then waits until all ranks have published theirs. On failure this
  /// rank leaves (AwaitPeer, which explains `is_behind_counts`).
  absl::Status AwaitShown(absl::string_view what, bool is_behind_counts = false) {
    return Meet(what, &Counters::shown, is_behind_counts);
  }
  absl::Status AwaitReduced(absl::string_view what) {
    return Meet(what, &Counters::reduced, false);
  }

  const Board& board() const { return board_; }

 private:
  struct Counters {
    alignas(64) std::atomic<unsigned> shown;
    /// Whose data are shown, in odd and even windows: a peer is at most one window ahead.
    std::atomic<uint64_t> step[2];
    alignas(64) std::atomic<unsigned> reduced;
  };
  char* Half(int index, int which) const {
    return bases_[index] + kCounterBytes + (2 * which + static_cast<int64_t>(epoch_ % 2)) * window_;
  }
  absl::Status Meet(absl::string_view what, std::atomic<unsigned> Counters::* counter,
                    bool is_behind_counts);

  std::vector<std::shared_ptr<Region>> regions_;
  std::vector<char*> bases_;  // by index in the group
  int64_t offset_, bytes_;
  int64_t window_;
  bool populated_ = false;
  Members group_;
  int rank_;
  Board board_;
  WaitTerms terms_;
  unsigned epoch_ = 0;
  uint64_t step_ = 0;
};

/// Library collectives between processes of one machine, through shared memory. Every wait has the
/// deadline, unlike those of MPI's collectives, which wait forever for a process that died in one
/// and keep using the user's memory. They are also faster. Sums are in rank order.
class NodeCommunicator final : public ProcessCommunicator {
 public:
  /// `staging`: null for a group of one rank.
  NodeCommunicator(const Members& group, std::unique_ptr<StagingBuffer> staging,
                   std::unique_ptr<PeerTraffic> traffic, int rank, const Members& column);

  absl::string_view name() const override { return "shm"; }
  void Announce(uint64_t step) override {
    ProcessCommunicator::Announce(step);
    if (staging_ != nullptr) staging_->Announce(step);
  }
  absl::Status AllToAlls(absl::Span<const AllToAllCall> calls) override;

 private:
  /// A range of each block.
  struct Window {
    int64_t begin;  // in elements
    int64_t count;  // in elements
    int64_t bytes;  // of `count` elements
  };
  absl::Status RunInGroup(const Call& call) override;
  /// Takes the call's data, `blocks` blocks of call.count elements, window by window, each the same
  /// range of every block: `show(window)` fills Shown(index_); once all ranks have, `take(window)`
  /// reads the data of all ranks.
  absl::Status InWindows(const Call& call, int blocks, absl::FunctionRef<void(const Window&)> show,
                         absl::FunctionRef<absl::Status(const Window&)> take);
  /// AllReduce, or, if root >= 0, Reduce to that rank.
  absl::Status ReduceAll(const Call& call, int root);
  absl::Status ReduceScatter(const Call& call);
  absl::Status AllGather(const Call& call);
  absl::Status Broadcast(const Call& call);
  absl::Status AllToAll(const AllToAllCall& all_to_all);

  int index_, size_;
  std::unique_ptr<StagingBuffer> staging_;
  std::vector<const void*> sources_;  // scratch of a reduction
};

}  // namespace coconet
