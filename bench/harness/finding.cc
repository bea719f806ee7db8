#include "bench/harness/finding.h"

#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "bench/harness/worker.h"

namespace coconet::bench {
namespace {

std::string Line(const Finding& finding) {
  std::vector<std::string> words;
  const auto add = [&](const std::string& word) {
    words.push_back(absl::StrReplaceAll(word, {{"\t", " "}, {"\n", " "}}));
  };
  std::apply([&](const auto&... field) { (add(WordOf(field)), ...); }, Finding::Fields(finding));
  return absl::StrJoin(words, "\t");
}

std::optional<Finding> ParseLine(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, '\t');
  Finding finding;
  size_t at = 0;
  const auto read = [&](auto& field) { return at < words.size() && FromWord(words[at++], field); };
  const bool is_read =
      std::apply([&](auto&... field) { return (read(field) && ...); }, Finding::Fields(finding));
  if (!is_read || at != words.size()) return std::nullopt;
  return finding;
}

}  // namespace

const Finding* FastestOf(absl::Span<const Finding> findings, absl::string_view side) {
  const Finding* fastest = nullptr;
  for (const Finding& f : findings) {
    if (f.side == side && (fastest == nullptr || f.timing.median_us < fastest->timing.median_us))
      fastest = &f;
  }
  return fastest;
}

std::string FactOf(absl::Span<const Finding> findings, absl::string_view fact,
                   absl::string_view name) {
  for (const Finding& f : findings) {
    if (f.side == fact && (name.empty() || f.name == name)) return f.detail;
  }
  return "";
}

int64_t CountOf(absl::Span<const Finding> findings, absl::string_view fact,
                absl::string_view name) {
  int64_t count = -1;
  return absl::SimpleAtoi(FactOf(findings, fact, name), &count) ? count : -1;
}

double NumberOf(absl::Span<const Finding> findings, absl::string_view fact) {
  double number = 0;
  return absl::SimpleAtod(FactOf(findings, fact), &number) ? number : 0;
}

void SetTimes(Row& row, absl::Span<const Finding> findings,
              std::initializer_list<absl::string_view> sides) {
  for (absl::string_view side : sides) {
    if (const Finding* const found = FastestOf(findings, side); found != nullptr)
      SetTime(row, side, found->timing);
  }
  row.Set("rounds", FastestOf(findings, "ours")->timing.samples);
}

absl::Status WriteFindings(const std::string& file, absl::Span<const Finding> findings) {
  std::ofstream out(file);
  for (const Finding& finding : findings) out << Line(finding) << "\n";
  out.flush();
  return out ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("write ", file, ": cannot"));
}

absl::StatusOr<std::vector<Finding>> ReadFindings(const std::string& file) {
  std::ifstream in(file);
  if (!in) return absl::NotFoundError(absl::StrCat("read ", file, ": cannot"));
  std::vector<Finding> findings;
  for (std::string line; std::getline(in, line);) {
    std::optional<Finding> finding = ParseLine(line);
    if (!finding)
      return absl::DataLossError(absl::StrCat("read ", file, ": what is \"", line, "\"?"));
    findings.push_back(*std::move(finding));
  }
  return findings;
}

}  // namespace coconet::bench
