#include "bench/probe/probe_lines.h"

#include <cstddef>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr size_t kLongest = 1 << 16;  // characters of a line
constexpr size_t kFields = 4;

/// The line up to its comment.
absl::string_view WithoutComment(absl::string_view line) {
  for (size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '#' && (at == 0 || absl::StrContains(" \t|", line[at - 1])))
      return line.substr(0, at);
  }
  return line;
}

absl::StatusOr<std::vector<std::string>> FieldsOf(absl::string_view line) {
  std::vector<std::string> fields;
  size_t begin = 0;
  int braces = 0;
  for (size_t at = 0; at <= line.size(); ++at) {
    const char c = at < line.size() ? line[at] : '|';
    if (c == '{') ++braces;
    if (c == '}' && --braces < 0) return absl::InvalidArgumentError("want '{' before '}'");
    if (c != '|' || (braces > 0 && at < line.size())) continue;
    fields.emplace_back(absl::StripAsciiWhitespace(line.substr(begin, at - begin)));
    begin = at + 1;
  }
  if (braces > 0) return absl::InvalidArgumentError("want '}' after '{'");
  return fields;
}

std::string OneSpaceBetween(absl::string_view words) {
  return absl::StrJoin(absl::StrSplit(words, absl::ByAnyChar(" \t"), absl::SkipEmpty()), " ");
}

absl::Status Parse(absl::string_view text, ProbeLine& line) {
  if (text.size() > kLongest) {
    return absl::InvalidArgumentError(
        absl::StrCat("want at most ", kLongest, " characters, have ", text.size()));
  }
  for (char c : text) {
    if (c != '\t' && absl::ascii_iscntrl(static_cast<unsigned char>(c)))
      return absl::InvalidArgumentError(
          absl::StrCat("want a text, have a control character (", static_cast<int>(c), ")"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> fields, FieldsOf(text));
  if (fields.size() > kFields) {
    return absl::InvalidArgumentError(
        absl::StrCat("want 'program | sizes | schedule | config', have ", fields.size(),
                     " fields, the last '", fields.back(), "'"));
  }
  const auto field = [&](size_t at) {
    return at < fields.size() && fields[at] != "*" ? fields[at] : "";
  };
  if (field(0).empty())
    return absl::InvalidArgumentError(
        "program: want a workload, a .coco file or a baseline, have none");
  line.program = field(0);
  line.sizes = OneSpaceBetween(field(1));
  line.schedule = field(2);
  line.config = OneSpaceBetween(field(3));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ProbeLine>> ParseProbeLines(absl::string_view text) {
  std::vector<ProbeLine> lines;
  int number = 0;
  for (absl::string_view whole : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view stripped = absl::StripAsciiWhitespace(WithoutComment(whole));
    if (stripped.empty()) continue;
    ProbeLine& line = lines.emplace_back();
    line.number = number;
    if (const absl::Status parsed = Parse(stripped, line); !parsed.ok())
      line.error = OfLine(line, "", parsed);
    line.text = std::string(stripped.substr(0, kLongest));
  }
  if (!lines.empty()) return lines;
  return absl::InvalidArgumentError(
      "no line to run: want lines such as 'adam | N=16Mi ranks=2 | RS; fuse(C); AG p | vec=4'");
}

absl::Status OfLine(const ProbeLine& line, absl::string_view field, const absl::Status& status) {
  return WithContext(status, absl::StrCat("line ", line.number, field.empty() ? "" : ", ", field));
}

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseWords(
    absl::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::set<std::string> names;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const size_t equals = word.find('=');
    if (equals == absl::string_view::npos || equals == 0 || equals + 1 == word.size())
      return absl::InvalidArgumentError(absl::StrCat("want NAME=VALUE, have '", word, "'"));
    std::string name(word.substr(0, equals));
    if (!names.insert(name).second)
      return absl::InvalidArgumentError(absl::StrCat("want ", name, " once, have it twice"));
    pairs.emplace_back(std::move(name), std::string(word.substr(equals + 1)));
  }
  return pairs;
}

}  // namespace coconet::bench
