#include "autotune/report/key_fields.h"

#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace coconet {
namespace {

bool IsDeclaration(absl::string_view line) {
  return absl::StartsWith(line, "input ") || absl::StartsWith(line, "state ");
}

/// The extents within the brackets of a declaration's type; none for a scalar.
std::vector<int64_t> ExtentsOfType(absl::string_view line) {
  std::vector<int64_t> extents;
  const size_t colon = line.find(" : ");
  if (colon == absl::string_view::npos) return extents;
  const size_t begin = line.find('[', colon), end = line.find(']', colon);
  if (begin == absl::string_view::npos || end == absl::string_view::npos || end < begin) return {};
  for (absl::string_view text : absl::StrSplit(line.substr(begin + 1, end - begin - 1), ", ")) {
    int64_t extent = 0;
    if (absl::SimpleAtoi(text, &extent)) extents.push_back(extent);
  }
  return extents;
}

/// A line with "#" for each number within brackets.
std::string WithoutExtents(absl::string_view line) {
  std::string kept;
  int depth = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    depth += (line[i] == '[') - (line[i] == ']');
    if (depth == 0 || !absl::ascii_isdigit(line[i])) {
      kept += line[i];
    } else if (kept.back() != '#') {
      kept += '#';
    }
  }
  return kept;
}

}  // namespace

ReportKey KeyOf(absl::string_view key_text) {
  ReportKey key;
  for (absl::string_view line : absl::StrSplit(key_text, '\n', absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&line, "program: ")) {
      key.program.emplace_back(line);
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    key.fields.emplace_back(halves.first, halves.second);
  }
  return key;
}

std::string ReportKey::Field(absl::string_view name) const {
  for (const auto& [field, value] : fields) {
    if (field == name) return value;
  }
  return "";
}

std::string FamilyKey(absl::string_view key_text) {
  std::string kept;
  for (absl::string_view line : absl::StrSplit(key_text, '\n'))
    absl::StrAppend(&kept,
                    absl::StartsWith(line, "program: ") ? WithoutExtents(line) : std::string(line),
                    "\n");
  return kept;
}

std::vector<int64_t> ExtentsOf(const ReportKey& key) {
  std::vector<int64_t> all;
  for (const std::string& line : key.program) {
    if (!IsDeclaration(line)) continue;
    for (int64_t extent : ExtentsOfType(line)) all.push_back(extent);
  }
  return all;
}

double ElementsOf(const ReportKey& key) {
  double elements = 0;
  for (const std::string& line : key.program) {
    if (!IsDeclaration(line)) continue;
    double product = 1;
    for (int64_t extent : ExtentsOfType(line)) product *= static_cast<double>(extent);
    elements += product;
  }
  return elements;
}

}  // namespace coconet
