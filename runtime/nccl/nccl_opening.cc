#include "runtime/nccl/nccl_opening.h"

#include <cstring>
#include <utility>

#include "coconet/base/status.h"

namespace coconet {
namespace {

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
