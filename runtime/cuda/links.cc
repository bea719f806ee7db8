#include "runtime/cuda/links.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace coconet {
namespace {

std::string LinkBetween(const SeenLinks& from, const SeenLinks& to) {
  if (from.uuid == to.uuid) return "same";
  const auto found = from.links.find(to.uuid);
  return found == from.links.end() ? "unseen" : found->second;
}

}  // namespace

std::string LetterOf(absl::string_view uuid, const Links& links) {
  return absl::StrCat(uuid, "\n", absl::StrJoin(links, "\n", absl::PairFormatter(" ")));
}

SeenLinks ReadLetter(absl::string_view letter) {
  const std::vector<absl::string_view> lines = absl::StrSplit(letter, '\n', absl::SkipEmpty());
  SeenLinks seen;
  for (absl::string_view line : lines) {
    const std::pair<std::string, std::string> link = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (link.second.empty()) {
      seen.uuid = link.first;
    } else {
      seen.links.insert(link);
    }
  }
  return seen;
}

std::string LinksText(absl::Span<const SeenLinks> node) {
  std::vector<std::string> rows, links;
  for (const SeenLinks& from : node) {
    std::vector<std::string> row;
    for (const SeenLinks& to : node) {
      row.push_back(&from == &to ? "-" : LinkBetween(from, to));
      if (&from != &to) links.push_back(row.back());
    }
    rows.push_back(absl::StrJoin(row, " "));
  }
  if (links.empty()) return "";
  const bool alike = absl::c_all_of(links, [&](const std::string& l) { return l == links[0]; });
  return alike ? absl::StrCat("all ", links[0]) : absl::StrJoin(rows, "; ");
}

}  // namespace coconet
