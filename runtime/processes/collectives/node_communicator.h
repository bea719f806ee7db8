#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/control/staging_buffer.h"
#include "runtime/mesh.h"
#include "runtime/processes/collectives/process_communicator.h"

namespace coconet {

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
