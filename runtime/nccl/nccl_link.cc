#include "runtime/nccl/nccl_link.h"

#include <cstring>
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

/// Ids by lane and group, made for the groups whose first rank is this one; zeros for the others.
absl::StatusOr<std::vector<ncclUniqueId>> MakeIds(const NcclApi& nccl,
                                                  const std::vector<Members>& groups, int lanes,
                                                  int rank) {
  std::vector<ncclUniqueId> ids(lanes * groups.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (groups[i % groups.size()].first == rank)
      RETURN_IF_ERROR(ToStatus(nccl, nccl.GetUniqueId(&ids[i]), "ncclGetUniqueId"));
  }
  return ids;
}

/// Collective. The ids by lane and group of this rank.
absl::StatusOr<std::vector<ncclUniqueId>> HandIdsRound(Exchange& exchange,
                                                       const std::vector<Members>& groups,
                                                       const std::vector<ncclUniqueId>& mine) {
  const auto* bytes = reinterpret_cast<const char*>(mine.data());
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   exchange.AllGather({bytes, mine.size() * sizeof mine[0]}));
  std::vector<ncclUniqueId> ids(mine.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string& letter = all[groups[i % groups.size()].first];
    CC_CHECK(letter.size() == ids.size() * sizeof ids[0]);
    std::memcpy(&ids[i], letter.data() + i * sizeof ids[0], sizeof ids[0]);
  }
  return ids;
}

/// Collective. Joins one communicator after the other, until one fails on some rank.
absl::StatusOr<NcclOpening> JoinAll(const NcclApi& nccl, const StreamLibraryTerms& terms,
                                    const std::vector<Members>& groups,
                                    const std::vector<ncclUniqueId>& ids) {
  NcclOpening opening;
  for (size_t i = 0; i < ids.size() && opening.note.empty(); ++i) {
    const NcclLink::Terms of_link{nccl, groups[i % groups.size()], terms.rank, terms.board,
                                  terms.timeout_s};
    absl::StatusOr<std::unique_ptr<NcclLink>> link = NcclLink::Begin(of_link, ids[i]);
    ASSIGN_OR_RETURN(opening.note, FirstNote(terms.exchange, link.status().message()));
    if (link.ok()) opening.links.push_back(*std::move(link));
    if (!opening.note.empty()) break;
    // Half of the time, because a rank that fails then waits for the others in the exchange, which
    // also has a deadline.
    const absl::Status joined = opening.links.back()->Join(terms.timeout_s / 2);
    ASSIGN_OR_RETURN(opening.note, FirstNote(terms.exchange, joined.message()));
  }
  if (opening.note.empty()) return opening;
  for (const std::shared_ptr<NcclLink>& link : opening.links) link->Abort();
  return opening;
}

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

absl::StatusOr<NcclOpening> OpenNcclLinks(const NcclApi& nccl, const StreamLibraryTerms& terms,
                                          const std::vector<Members>& groups, int lanes) {
  const absl::StatusOr<std::vector<ncclUniqueId>> mine = MakeIds(nccl, groups, lanes, terms.rank);
  ASSIGN_OR_RETURN(std::string note, FirstNote(terms.exchange, mine.status().message()));
  if (!note.empty()) return NcclOpening{.links = {}, .note = std::move(note)};
  ASSIGN_OR_RETURN(const std::vector<ncclUniqueId> ids,
                   HandIdsRound(terms.exchange, groups, *mine));
  return JoinAll(nccl, terms, groups, ids);
}

}  // namespace coconet
