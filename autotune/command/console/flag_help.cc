#include "autotune/command/console/flag_help.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace coconet {

namespace {
constexpr size_t kWidest = 100, kIndent = 18;  // columns
}  // namespace

std::vector<std::string> WordsOf(absl::string_view list) {
  return absl::StrSplit(absl::StrReplaceAll(list, {{" or ", ", "}}), ", ", absl::SkipEmpty());
}

std::string FlagsText(absl::Span<const FlagHelp> flags) {
  std::string text;
  for (const FlagHelp& flag : flags) {
    std::string line = absl::StrCat("  --", flag.shown);
    line.resize(std::max(line.size() + 1, kIndent - 1), ' ');
    for (absl::string_view word : absl::StrSplit(flag.does, ' ')) {
      if (line.size() + 1 + word.size() > kWidest) {
        absl::StrAppend(&text, line, "\n");
        line = std::string(kIndent - 1, ' ');
      }
      absl::StrAppend(&line, " ", word);
    }
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace coconet
