#ifndef COCONET_RUNTIME_NODE_CONTROL_H_
#define COCONET_RUNTIME_NODE_CONTROL_H_

#include <atomic>

#include "absl/status/status.h"
#include "runtime/kernel_abi.h"
#include "runtime/mesh.h"
#include "runtime/node/board.h"
#include "runtime/node/wait.h"
#include "runtime/plan.h"

namespace coconet {

/// One rank's Control of a bound plan, followed by what the host backend needs beside it. Peers
/// that map it raise `abort` and read why this rank gave up; only this rank's process follows the
/// pointers.
struct HostControl : Control {
  alignas(64) std::atomic<bool> claimed;  // somebody is writing `failure` and `end`
  WaitEnd end;  // how the wait that failed ended; kReady: not a wait, a step failed
  int suspect;  // world rank that the wait's peer waited for, if for any, else the peer
  int rank;
  Members node;    // the peers that kernels call 0, 1, ...
  int stage_size;  // from a rank to the one beside it
  Board* board;
};

/// Prepares zero-filled memory for the kernels of one rank. `near`, as in Control, must outlive its
/// use.
void Open(HostControl& control, int rank, const Members& node, int stage_size, Board& board,
          const WaitTerms& terms, const unsigned char* near);

/// `step` failed on this rank: its peers, and its other lane, shall give up too. Does nothing once
/// a wait has.
void GiveUp(HostControl& control, int step);

/// Why `control`'s rank gave up: DeadlineExceeded, or Aborted. Requires that it did.
absl::Status WhyGaveUp(const HostControl& control, int rank, const Board& board, const Plan& plan);

/// The world rank of what kernels of `rank` call `peer`: a number in its node, or beside,
/// `stage_size` ranks away.
int WorldRank(const Members& node, int rank, int stage_size, int peer);

/// `step 2 "fuse(RS, C, AG)" on rank 1`
std::string StepName(const Plan& plan, int step, int rank);

}  // namespace coconet

#endif  // COCONET_RUNTIME_NODE_CONTROL_H_
