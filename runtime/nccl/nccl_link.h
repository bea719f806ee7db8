#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/control/board.h"
#include "runtime/cuda/driver/stream_library.h"
#include "runtime/mesh.h"
#include "runtime/nccl/nccl_api.h"

namespace coconet {

/// One rank's end of a nonblocking NCCL communicator. All waits for peers happen here: until the
/// deadline at most, and until a rank leaves.
class NcclLink {
 public:
  struct Terms {
    const NcclApi& nccl;
    Members members;
    int rank = 0;  // world rank
    Board board;
    double timeout_s = 60;
  };
  /// Multiprocessors that a call may take: NCCL's own upper limit.
  static constexpr int kMultiprocessors = 32;

  /// Begins a communicator between `members`, all of which pass the id that one of them made. The
  /// calling thread's device must be the rank's.
  static absl::StatusOr<std::unique_ptr<NcclLink>> Begin(const Terms& terms,
                                                         const ncclUniqueId& id);
  /// Collective: completes Begin; waits for the peers for at most `patience_s` seconds.
  absl::Status Join(double patience_s);
  /// Waits until all operations are done or the deadline has passed; aborts if a rank has left.
  ~NcclLink();
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  const NcclApi& nccl() const { return terms_.nccl; }
  ncclComm_t comm() const { return comm_; }
  int size() const { return terms_.members.size; }
  int index() const { return terms_.members.Index(terms_.rank); }

  /// Waits until begun operations are in their stream; the first calls connect to peers, which must
  /// take part. DeadlineExceeded, or Aborted when a rank has left or `stopped` returns true.
  absl::Status Settle(absl::string_view what, const std::function<bool()>& stopped);
  /// OK unless a begun operation has failed.
  absl::Status Check() const;
  /// Ends all enqueued operations, whatever peers do. No other call may follow.
  void Abort();

 private:
  NcclLink(const Terms& terms, ncclComm_t comm) : terms_(terms), comm_(comm) {}
  absl::Status Await(absl::string_view what, double patience_s,
                     const std::function<bool()>& stopped);

  Terms terms_;
  ncclComm_t comm_;  // null once aborted
};

/// The communicators of a rank.
struct NcclOpening {
  std::vector<std::shared_ptr<NcclLink>> links;  // by lane and group
  std::string note;                              // why there are none, on all ranks; "": there are
};

/// Collective: makes a communicator per lane for each of this rank's `groups` (equally many on
/// every rank), one after the other, until one fails on some rank. Returns an error only if the
/// exchange fails.
absl::StatusOr<NcclOpening> OpenNcclLinks(const NcclApi& nccl, const StreamLibraryTerms& terms,
                                          const std::vector<Members>& groups, int lanes);

}  // namespace coconet
