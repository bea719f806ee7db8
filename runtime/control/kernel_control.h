#pragma once

#include <atomic>

#include "absl/status/status.h"
#include "runtime/control/board.h"
#include "runtime/kernel_abi.h"
#include "runtime/mesh.h"
#include "runtime/node/wait.h"
#include "runtime/plan.h"

namespace coconet {

/// One rank's Control of a bound plan, and the host backend's own fields. Peers that map it raise
/// `abort` and read the failure; only this rank's process follows the pointers.
struct HostControl : Control {
  alignas(64) std::atomic<bool> claimed;  // a thread is writing `failure` and `end`
  WaitEnd end;  // how the failed wait ended; kReady: no wait failed, but a step
  /// World rank that blocked the failed wait: the end of the chain of waits that begins
  /// at its peer.
  int suspect;
  /// BoundPlan::DelayWaits: how many waits are still to last longer, and by how much.
  std::atomic<int> delayed_waits;
  int64_t delay_ns;
  int rank;
  Members node;    // the peers that kernels number 0, 1, ...
  int stage_size;  // distance between neighbours of adjacent pipeline stages, in world ranks
  Board* board;
};

/// Initialises `control`, zero-filled memory, for the kernels of one rank. `near` (Control::near)
/// must outlive the control.
void Open(HostControl& control, int rank, const Members& node, int stage_size, Board& board,
          const WaitTerms& terms, const unsigned char* near);

/// Reports that `step` failed on this rank, so that its peers and its other lane give up too. No
/// effect once a wait has failed.
void GiveUp(HostControl& control, int step);

/// The error of a rank that gave up: DeadlineExceeded or Aborted. Requires that it gave up.
absl::Status WhyGaveUp(const HostControl& control, int rank, const Board& board, const Plan& plan);

/// The world rank of kernels' peer number `peer` on `rank`: a number in the node, or Beside.
int WorldRank(const Members& node, int rank, int stage_size, int peer);

/// `step 2 "fuse(RS, C, AG)" on rank 1`
std::string StepName(const Plan& plan, int step, int rank);

}  // namespace coconet
