#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "runtime/control/board.h"
#include "runtime/control/wire.h"
#include "runtime/processes/collectives/peer_traffic.h"

namespace coconet {

/// Messages between ranks that may be on different nodes. Waits sleep: over a link of 2 Gbit/s, an
/// AllReduce of 16 MiB between two ranks takes 77 ms, of which 12 ms are processor time;
/// MPI_Allreduce takes 71 to 107 ms, all of it processor time, and MPI_Iallreduce with the same
/// sleeps 140 ms. The wire only accesses memory of this object; after a failure, when messages
/// cannot be cancelled, that memory is leaked.
class MessageTraffic final : public PeerTraffic {
 public:
  /// Sends messages over `wire` with `tag`, which must have no other user. `most`: the largest
  /// width. Waits end at once when `board` says that a rank has left.
  MessageTraffic(std::shared_ptr<Wire> wire, int tag, int rank, int most, double timeout_s,
                 Board board);
  ~MessageTraffic() override;

  absl::string_view name() const override { return wire_->name(); }
  using PeerTraffic::Move;
  /// The deadline is 1.25 times the timeout.
  absl::Status Move(absl::string_view what, const Streams& streams, Fill fill, Take take) override;

 private:
  struct Depot;     // buffers and messages under way
  struct Course;    // the state of one Move
  int Tag() const;  // of the messages of the announced step
  absl::Status Failed(absl::string_view what, const absl::Status& why);

  std::shared_ptr<Wire> wire_;
  int tag_;
  int rank_;
  int64_t timeout_ns_;
  Board board_;
  std::unique_ptr<Depot> depot_;
  absl::Status first_error_;
};

}  // namespace coconet
