#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/control/board.h"
#include "runtime/mesh.h"
#include "runtime/node/memory.h"
#include "runtime/node/wait.h"

namespace coconet {

/// Shared staging memory through which the ranks of a group communicate, window by window, and its
/// synchronisation. Only this memory is shared: after a rank gives up, no peer accesses the user's
/// tensors, and data read from a peer's window were complete when the peer published it.
class StagingBuffer {
 public:
  /// Bytes per rank for a collective's buffer: counters, two halves for shown data (used
  /// alternately), and two for reduced data. A window of about 512 KiB was the fastest of those
  /// from 64 KiB to 1 MiB, for 4 MB and more.
  static constexpr int64_t kBytes = int64_t{2} << 20;
  static constexpr int64_t kCounterBytes = 4096;

  /// `regions`: by world rank; `bytes` bytes of each from `offset` on, a page, belong to this
  /// buffer, zero-filled. They need not be populated.
  StagingBuffer(std::vector<std::shared_ptr<Region>> regions, int64_t offset, int64_t bytes,
                const Members& group, int rank, Board board, WaitTerms terms);

  /// Populates this rank's part, once; to be called before the first window unless the owner has.
  /// On failure this rank leaves.
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
    /// The step of the shown data, in odd and even windows: a peer is at most one window ahead.
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

}  // namespace coconet
