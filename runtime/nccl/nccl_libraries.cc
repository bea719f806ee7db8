#include "runtime/nccl/nccl_libraries.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/nccl/nccl_libraries_over.h"
#include "runtime/nccl/nccl_library.h"
#include "runtime/nccl/nccl_link.h"

namespace coconet {
namespace {

/// The groups of `rank` that are of several ranks, each once: as many on every rank.
std::vector<Members> GroupsOf(const Mesh& mesh, int rank) {
  std::vector<Members> groups;
  const auto add = [&](const Members& members) {
    if (members.size > 1 && !absl::c_linear_search(groups, members)) groups.push_back(members);
  };
  for (Group group : kAllGroups) add(GroupOf(mesh, group, rank));
  add(Column(mesh, rank));
  return groups;
}

StreamLibraries Staged(absl::string_view note) {
  StreamLibraries staged;
  staged.note = absl::StrCat("not by NCCL: ", note);
  return staged;
}

/// By lane and group, for those that this rank is the first of; zeros for the others.
absl::StatusOr<std::vector<ncclUniqueId>> MakeIds(const NcclApi& nccl, const std::vector<Members>& groups, int rank) {
  std::vector<ncclUniqueId> ids(kLanes * groups.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (groups[i % groups.size()].first == rank) RETURN_IF_ERROR(ToStatus(nccl, nccl.GetUniqueId(&ids[i]), "ncclGetUniqueId"));
  }
  return ids;
}

/// Collective. By lane and group of this rank.
absl::StatusOr<std::vector<ncclUniqueId>> HandIdsRound(Exchange& exchange, const std::vector<Members>& groups, const std::vector<ncclUniqueId>& mine) {
  const auto* bytes = reinterpret_cast<const char*>(mine.data());
  ASSIGN_OR_RETURN(const std::vector<std::string> all, exchange.AllGather({bytes, mine.size() * sizeof mine[0]}));
  std::vector<ncclUniqueId> ids(mine.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string& letter = all[groups[i % groups.size()].first];
    CC_CHECK(letter.size() == ids.size() * sizeof ids[0]);
    std::memcpy(&ids[i], letter.data() + i * sizeof ids[0], sizeof ids[0]);
  }
  return ids;
}

/// What has been opened so far.
struct Opening {
  std::vector<std::shared_ptr<NcclLink>> links;  // by lane and group
  std::string note;                              // why it goes no further
};

/// Collective. One after the other, until one does not succeed on some rank.
absl::StatusOr<Opening> JoinAll(const NcclApi& nccl, const StreamLibraryTerms& terms, const std::vector<Members>& groups,
                                const std::vector<ncclUniqueId>& ids) {
  Opening opening;
  for (size_t i = 0; i < ids.size() && opening.note.empty(); ++i) {
    const NcclLink::Terms of_link{nccl, groups[i % groups.size()], terms.rank, terms.board, terms.timeout_s};
    absl::StatusOr<std::unique_ptr<NcclLink>> link = NcclLink::Begin(of_link, ids[i]);
    ASSIGN_OR_RETURN(opening.note, FirstNote(terms.exchange, link.status().message()));
    if (link.ok()) opening.links.push_back(*std::move(link));
    if (!opening.note.empty()) break;
    // Half of the time: who fails waits for the others in the exchange, and has a deadline, too.
    const absl::Status joined = opening.links.back()->Join(terms.timeout_s / 2);
    ASSIGN_OR_RETURN(opening.note, FirstNote(terms.exchange, joined.message()));
  }
  if (opening.note.empty()) return opening;
  for (const std::shared_ptr<NcclLink>& link : opening.links) link->Abort();
  return opening;
}

NcclLibrary::Links LinksOf(const Mesh& mesh, int rank, const std::vector<Members>& groups, const std::shared_ptr<NcclLink>* links) {
  const auto find = [&](const Members& members) {
    const auto found = absl::c_find(groups, members);
    return found == groups.end() ? nullptr : links[found - groups.begin()];
  };
  NcclLibrary::Links of;
  for (Group group : kAllGroups) of.of_group[static_cast<size_t>(group)] = find(GroupOf(mesh, group, rank));
  of.column = find(Column(mesh, rank));
  return of;
}

}  // namespace

absl::StatusOr<StreamLibraries> OpenNcclLibrariesOver(const absl::StatusOr<const NcclApi*>& nccl, const StreamLibraryTerms& terms) {
  ASSIGN_OR_RETURN(std::string note, FirstNote(terms.exchange, nccl.status().message()));
  if (!note.empty()) return Staged(note);
  const std::string name = absl::StrCat("nccl ", (*nccl)->version);
  const absl::Status alike = terms.exchange.CheckSame("NCCL", name);
  if (absl::IsInvalidArgument(alike)) return Staged(alike.message());
  RETURN_IF_ERROR(alike);

  const std::vector<Members> groups = GroupsOf(terms.mesh, terms.rank);
  const absl::StatusOr<std::vector<ncclUniqueId>> mine = MakeIds(**nccl, groups, terms.rank);
  ASSIGN_OR_RETURN(note, FirstNote(terms.exchange, mine.status().message()));
  if (!note.empty()) return Staged(note);
  ASSIGN_OR_RETURN(const std::vector<ncclUniqueId> ids, HandIdsRound(terms.exchange, groups, *mine));
  ASSIGN_OR_RETURN(const Opening opening, JoinAll(**nccl, terms, groups, ids));
  if (!opening.note.empty()) return Staged(opening.note);

  StreamLibraries libraries;
  libraries.name = name;
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::shared_ptr<NcclLink>* of_lane = opening.links.data() + lane * groups.size();
    libraries.of_lane[lane] = std::make_shared<NcclLibrary>(**nccl, terms.driver, LinksOf(terms.mesh, terms.rank, groups, of_lane));
  }
  return libraries;
}

absl::StatusOr<StreamLibraries> OpenNcclLibraries(const StreamLibraryTerms& terms) { return OpenNcclLibrariesOver(OpenNccl(), terms); }

}  // namespace coconet
