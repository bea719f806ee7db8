#include "runtime/nccl/nccl_libraries.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "runtime/nccl/nccl_library.h"
#include "runtime/nccl/nccl_link.h"
#include "runtime/nccl/nccl_windows.h"

namespace coconet {
namespace {

/// `rank`'s groups of more than one rank, without duplicates; equally many on every rank.
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

NcclLibrary::Links LinksOf(const Mesh& mesh, int rank, const std::vector<Members>& groups,
                           const std::shared_ptr<NcclLink>* links) {
  const auto find = [&](const Members& members) {
    const auto found = absl::c_find(groups, members);
    return found == groups.end() ? nullptr : links[found - groups.begin()];
  };
  NcclLibrary::Links of;
  for (Group group : kAllGroups)
    of.of_group[static_cast<size_t>(group)] = find(GroupOf(mesh, group, rank));
  of.column = find(Column(mesh, rank));
  return of;
}

}  // namespace

absl::StatusOr<StreamLibraries> OpenNcclLibrariesOver(const absl::StatusOr<const NcclApi*>& nccl,
                                                      const StreamLibraryTerms& terms) {
  ASSIGN_OR_RETURN(std::string note, FirstNote(terms.exchange, nccl.status().message()));
  if (!note.empty()) return Staged(note);
  const std::string name = absl::StrCat("nccl ", (*nccl)->version);
  const absl::Status alike = terms.exchange.CheckSame("NCCL", name);
  if (absl::IsInvalidArgument(alike)) return Staged(alike.message());
  RETURN_IF_ERROR(alike);

  const std::vector<Members> groups = GroupsOf(terms.mesh, terms.rank);
  ASSIGN_OR_RETURN(const NcclOpening opening, OpenNcclLinks(**nccl, terms, groups, kLanes));
  if (!opening.note.empty()) return Staged(opening.note);

  StreamLibraries libraries;
  libraries.name = name;
  libraries.open_windows = [&nccl = **nccl](const StreamLibraryTerms& of_rank) {
    return OpenNcclWindows(nccl, of_rank);
  };
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::shared_ptr<NcclLink>* of_lane = opening.links.data() + lane * groups.size();
    libraries.of_lane[lane] = std::make_shared<NcclLibrary>(
        **nccl, terms.driver, LinksOf(terms.mesh, terms.rank, groups, of_lane));
  }
  return libraries;
}

absl::StatusOr<StreamLibraries> OpenNcclLibraries(const StreamLibraryTerms& terms) {
  return OpenNcclLibrariesOver(OpenNccl(), terms);
}

}  // namespace coconet
