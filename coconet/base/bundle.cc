#include "coconet/base/bundle.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace coconet {
namespace {

constexpr absl::string_view kEndOfNames = "\n\n";

absl::Status Damaged(absl::string_view found) {
  return absl::DataLossError(absl::StrCat("a bundle of binaries is damaged: ", found));
}

}  // namespace

std::string PackBundle(absl::Span<const std::pair<std::string, std::string>> parts) {
  std::string bundle(kBundleBegin);
  for (const auto& [name, content] : parts)
    absl::StrAppend(&bundle, name, " ", content.size(), "\n");
  bundle += "\n";
  for (const auto& [name, content] : parts) bundle += content;
  return bundle;
}

bool IsBundle(absl::string_view content) { return absl::StartsWith(content, kBundleBegin); }

absl::StatusOr<std::vector<std::pair<std::string, absl::string_view>>> UnpackBundle(
    absl::string_view bundle) {
  if (!absl::ConsumePrefix(&bundle, kBundleBegin)) return Damaged("its first line is another");
  std::vector<std::pair<std::string, absl::string_view>> parts;
  if (absl::ConsumePrefix(&bundle, "\n")) return parts;
  const size_t end = bundle.find(kEndOfNames);
  if (end == absl::string_view::npos) return Damaged("its names do not end");
  absl::string_view contents = bundle.substr(end + kEndOfNames.size());
  for (absl::string_view line : absl::StrSplit(bundle.substr(0, end), '\n')) {
    const std::pair<absl::string_view, absl::string_view> fields = absl::StrSplit(line, ' ');
    uint64_t bytes = 0;
    if (!absl::SimpleAtoi(fields.second, &bytes) || bytes > contents.size())
      return Damaged(absl::StrCat("of '", line, "' it has ", contents.size(), " bytes"));
    parts.emplace_back(fields.first, contents.substr(0, bytes));
    contents.remove_prefix(bytes);
  }
  return parts;
}

}  // namespace coconet
