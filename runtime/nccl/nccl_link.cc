#include "runtime/nccl/nccl_link.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/node/wait.h"

namespace coconet {
namespace {

/// "ranks 0 to 3", "ranks 1, 3, ... 7"
std::string Words(const Members& members) {
  return absl::StrCat("ranks ", members.first,
                      members.stride == 1 ? " to " : absl::StrCat(", ", members.Rank(1), ", ... "),
                      members.Rank(members.size - 1));
}

bool Never() { return false; }

}  // namespace

absl::StatusOr<std::unique_ptr<NcclLink>> NcclLink::Begin(const Terms& terms,
                                                          const ncclUniqueId& id) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = kMultiprocessors;
  ncclComm_t comm = nullptr;
  const Members& members = terms.members;
  const ncclResult_t begun =
      terms.nccl.CommInitRankConfig(&comm, members.size, id, members.Index(terms.rank), &config);
  std::unique_ptr<NcclLink> link(new NcclLink(terms, comm));
  const absl::Status status = ToStatusOfBegun(terms.nccl, begun, "ncclCommInitRankConfig");
  if (status.ok()) return link;
  link->Abort();
  return status;
}

absl::Status NcclLink::Join(double patience_s) {
  return Await("ncclCommInitRankConfig", patience_s, Never);
}

NcclLink::~NcclLink() {
  if (comm_ == nullptr) return;
  // A communicator that a rank has left would never finish.
  const bool finished =
      terms_.board.Left().ok() &&
      ToStatusOfBegun(nccl(), nccl().CommFinalize(comm_), "ncclCommFinalize").ok() &&
      Await("ncclCommFinalize", terms_.timeout_s, Never).ok();
  if (finished) {
    nccl().CommDestroy(comm_);
  } else {
    Abort();
  }
}

absl::Status NcclLink::Settle(absl::string_view what, const std::function<bool()>& stopped) {
  return Await(what, terms_.timeout_s, stopped);
}

absl::Status NcclLink::Await(absl::string_view what, double patience_s,
                             const std::function<bool()>& stopped) {
  ncclResult_t asked = ncclSuccess, state = ncclSuccess;
  const auto ready = [&] {
    asked = nccl().CommGetAsyncError(comm_, &state);
    return asked != ncclSuccess || state != ncclInProgress;
  };
  const auto in_vain = [&] { return !terms_.board.Left().ok() || stopped(); };
  switch (WaitUntil({.spins = 1000, .timeout_ns = static_cast<int64_t>(patience_s * 1e9)}, ready,
                    in_vain)) {
    case WaitEnd::kReady:
      RETURN_IF_ERROR(ToStatus(nccl(), asked, "ncclCommGetAsyncError"));
      return ToStatus(nccl(), state, what);
    case WaitEnd::kInVain:
      RETURN_IF_ERROR(WithContext(terms_.board.Left(), what));
      return absl::AbortedError(absl::StrCat(what, ": stopped"));
    case WaitEnd::kDeadline:
      return absl::DeadlineExceededError(absl::StrCat(what, ": waited ", patience_s, " s for ",
                                                      Words(terms_.members), ", one of which ",
                                                      kDeadlineAdvice));
  }
  CC_CHECK(false);
}

absl::Status NcclLink::Check() const {
  ncclResult_t state = ncclSuccess;
  RETURN_IF_ERROR(
      ToStatus(nccl(), nccl().CommGetAsyncError(comm_, &state), "ncclCommGetAsyncError"));
  return ToStatusOfBegun(nccl(), state, "an NCCL collective");
}

void NcclLink::Abort() {
  if (comm_ != nullptr) nccl().CommAbort(std::exchange(comm_, nullptr));
}

}  // namespace coconet
