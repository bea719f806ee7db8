#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/control/board.h"
#include "runtime/node/memory.h"
#include "runtime/node/wait.h"
#include "runtime/processes/collectives/peer_traffic.h"

namespace coconet {

/// Messages between ranks of one machine that do not address each other's tensors: pipeline stages
/// and virtual nodes. Each pair of ranks has a ring of slots in the receiver's shared memory.
class SharedTraffic final : public PeerTraffic {
 public:
  /// Bytes of one rank's memory, for messages of `ranks` ranks with one tag.
  static int64_t Bytes(int ranks);

  /// `regions`: by rank; the rings of this tag begin at `offset`, zero-filled.
  SharedTraffic(std::vector<std::shared_ptr<Region>> regions, int64_t offset, int rank, Board board,
                WaitTerms terms);

  absl::string_view name() const override { return "shm"; }
  using PeerTraffic::Move;
  absl::Status Move(absl::string_view what, const Streams& streams, Fill fill, Take take) override;

 private:
  static constexpr int64_t kSlots = 4;
  static constexpr int64_t kSlotBytes = int64_t{16} << 10;
  /// Pieces counted since the rings were made.
  struct Ring {
    alignas(64) std::atomic<uint64_t> sent;
    alignas(64) std::atomic<uint64_t> taken;
    std::array<uint64_t, kSlots> steps;  // whose data slots have
    alignas(64) char slots[kSlots][kSlotBytes];
  };
  /// The state of one Move.
  struct Course;

  Ring& RingOf(int receiver, int sender) const;
  absl::Status Failed(absl::string_view what, const absl::Status& why);

  std::vector<std::shared_ptr<Region>> regions_;
  int64_t offset_;
  int rank_;
  Board board_;
  WaitTerms terms_;
  std::vector<absl::Span<const char>> pieces_;  // scratch
  absl::Status first_error_;
};

}  // namespace coconet
