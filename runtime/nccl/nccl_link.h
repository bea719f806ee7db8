#ifndef COCONET_RUNTIME_NCCL_NCCL_LINK_H_
#define COCONET_RUNTIME_NCCL_NCCL_LINK_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/mesh.h"
#include "runtime/nccl/nccl_api.h"
#include "runtime/node/board.h"

namespace coconet {

/// One rank's end of a communicator of NCCL, of the kind that does not block: so whoever waits for
/// peers does it here, at most until the deadline, and hears when a rank has left.
class NcclLink {
 public:
  struct Terms {
    const NcclApi& nccl;
    Members members;
    int rank = 0;  // in the world
    Board board;
    double timeout_s = 60;
  };
  /// Multiprocessors that a call may take: what NCCL takes by itself at most.
  static constexpr int kMultiprocessors = 32;

  /// Between `members`, all with the id that one of them made; the calling thread's device is the
  /// rank's.
  static absl::StatusOr<std::unique_ptr<NcclLink>> Begin(const Terms& terms,
                                                         const ncclUniqueId& id);
  /// Collective. Then it can be used; waits for the others for at most `patience_s`.
  absl::Status Join(double patience_s);
  /// Waits until all is done, at most until the deadline, unless a rank has left.
  ~NcclLink();
  NcclLink(const NcclLink&) = delete;
  NcclLink& operator=(const NcclLink&) = delete;

  const NcclApi& nccl() const { return terms_.nccl; }
  ncclComm_t comm() const { return comm_; }
  int size() const { return terms_.members.size; }
  int index() const { return terms_.members.Index(terms_.rank); }

  /// Returns when what was begun is in its stream; the first calls connect to peers, which must
  /// come for that. DeadlineExceeded, or Aborted where a rank has left or `stopped` says so.
  absl::Status Settle(absl::string_view what, const std::function<bool()>& stopped);
  /// OK unless something begun has failed.
  absl::Status Check() const;
  /// What is in streams ends, whatever peers do. No other call may follow.
  void Abort();

 private:
  NcclLink(const Terms& terms, ncclComm_t comm) : terms_(terms), comm_(comm) {}
  absl::Status Await(absl::string_view what, double patience_s,
                     const std::function<bool()>& stopped);

  Terms terms_;
  ncclComm_t comm_;  // null once aborted
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_NCCL_NCCL_LINK_H_
