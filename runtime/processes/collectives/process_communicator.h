#pragma once

#include <memory>

#include "runtime/mesh.h"
#include "runtime/processes/collectives/peer_traffic.h"
#include "runtime/rank.h"

namespace coconet {

/// What all libraries between processes share: the sends between pipeline stages, on one node
/// or several.
class ProcessCommunicator : public Communicator {
 public:
  void Announce(uint64_t step) override { traffic_->Announce(step); }
  absl::Status Run(const CollectiveStep& step, const void* in, void* out) final;

 protected:
  /// A collective of the group.
  struct Call {
    const CollectiveStep& step;
    const char* in;
    char* out;
    int64_t count = step.count;
    int64_t element = static_cast<int64_t>(SizeOf(step.dtype));
    int64_t bytes = count * element;
    absl::string_view what = step.Call();
  };
  /// `column`: the ranks at `rank`'s place in all pipeline stages.
  ProcessCommunicator(std::unique_ptr<PeerTraffic> traffic, int rank, const Members& column)
      : traffic_(std::move(traffic)), world_rank_(rank), column_(column) {}
  /// Does any collective but an AllToAll and a send.
  virtual absl::Status RunInGroup(const Call& call) = 0;
  std::unique_ptr<PeerTraffic> traffic_;
  int world_rank_;

 private:
  absl::Status Send(const Call& call, int shift);
  Members column_;
  Streams streams_;  // scratch of a send
};

}  // namespace coconet
