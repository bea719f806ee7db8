#include "tests/mutation/planted/mutation_edits.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "coconet/base/status.h"

namespace coconet {

/// Where `find` lies in `text` at or after `from`, begin and end; whitespace does not count, so
/// that the formatter may break lines elsewhere. Both npos: nowhere.
static std::pair<size_t, size_t> FindCode(absl::string_view text, absl::string_view find,
                                          size_t from) {
  find = absl::StripAsciiWhitespace(find);
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (text[begin] != find[0]) continue;
    size_t at = begin, matched = 0;
    while (matched < find.size() && at < text.size()) {
      if (absl::ascii_isspace(find[matched])) {
        ++matched;
      } else if (text[at] == find[matched]) {
        ++at, ++matched;
      } else if (absl::ascii_isspace(text[at])) {
        ++at;
      } else {
        break;
      }
    }
    if (matched == find.size()) return {begin, at};
  }
  return {absl::string_view::npos, absl::string_view::npos};
}

bool IsOfLibrary(const MutationEdit& edit) { return absl::StrContains(edit.file, '/'); }

absl::Status Edit(const MutationEdit& edit, std::string& text) {
  const auto [begin, end] = FindCode(text, edit.find, 0);
  const bool found = begin != absl::string_view::npos;
  if (!found || FindCode(text, edit.find, begin + 1).first != absl::string_view::npos) {
    return absl::FailedPreconditionError(absl::StrCat(
        "planting a mistake in ", edit.file, ": want this there once, have it ",
        found ? "more than once" : "nowhere", "; say anew where it goes:\n", edit.find));
  }
  text.replace(begin, end - begin, edit.with);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Planted(const std::string& source,
                                    const std::vector<MutationEdit>& edits, Dialect dialect) {
  std::vector<DeviceHeader> headers = DeviceHeaders(dialect);
  std::vector<std::string> texts;
  for (const DeviceHeader& header : headers) texts.emplace_back(header.text);
  std::string kernels = source;
  for (const MutationEdit& edit : edits) {
    if (IsOfLibrary(edit)) continue;
    const auto header =
        absl::c_find_if(headers, [&](const DeviceHeader& h) { return h.name == edit.file; });
    if (header == headers.end() && edit.file != absl::string_view(kKernelText))
      return absl::InvalidArgumentError(absl::StrCat("planting a mistake: no header ", edit.file));
    RETURN_IF_ERROR(
        Edit(edit, header == headers.end() ? kernels : texts[header - headers.begin()]));
  }
  for (size_t i = 0; i < headers.size(); ++i) headers[i].text = texts[i];
  return ExpandIncludes(kernels, headers);
}

absl::StatusOr<Binary> PlantingCompiler::Compile(const KernelSource& source) {
  if (!planted_) return compiler_->Compile(source);
  ASSIGN_OR_RETURN(const std::string planted, Plant(source.text()));
  return compiler_->Compile(planted);
}

}  // namespace coconet
