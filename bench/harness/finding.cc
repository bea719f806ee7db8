#include "bench/harness/finding.h"

#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "bench/harness/worker.h"

namespace coconet::bench {
namespace {

std::string Line(const Finding& finding) {
  std::vector<std::string> words = WordsOf(Finding::Fields(finding));
  for (std::string& word : words) word = absl::StrReplaceAll(word, {{"\t", " "}, {"\n", " "}});
  return absl::StrJoin(words, "\t");
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

void SetTimes(Row& row, absl::Span<const Finding> findings,
              std::initializer_list<absl::string_view> sides) {
  for (absl::string_view side : sides) {
    if (const Finding* const found = FastestOf(findings, side); found != nullptr)
      SetTime(row, side, found->timing);
  }
  row.Set("rounds", FastestOf(findings, "ours")->timing.samples);
}

void SetFacts(Row& row, absl::Span<const Finding> findings, absl::string_view ours) {
  for (const Finding& fact : findings) {
    if (fact.timing.samples > 0) continue;
    const bool of_ours = fact.name.empty() || fact.name == ours;
    if (!of_ours && FastestOf(findings, fact.name) == nullptr) continue;  // about another form
    const std::string field = of_ours ? fact.side : absl::StrCat(fact.name, "_", fact.side);
    int64_t count = 0;
    double number = 0;
    if (absl::SimpleAtoi(fact.detail, &count))
      row.Set(field, count);
    else if (absl::SimpleAtod(fact.detail, &number))
      row.Set(field, number);
    else
      row.Set(field, fact.detail);
  }
}

void SetFindings(Row& row, absl::Span<const Finding> findings) {
  SetFacts(row, findings);
  for (const Finding& f : findings) {
    if (f.timing.samples == 0 || FastestOf(findings, f.side) != &f) continue;
    SetTime(row, f.side, f.timing);
    if (!f.name.empty()) row.Set(absl::StrCat(f.side, "_form"), f.name);
    row.Set("rounds", f.timing.samples);
  }
}

absl::Status WriteFindings(const std::string& file, absl::Span<const Finding> findings) {
  std::string text;
  for (const Finding& finding : findings) absl::StrAppend(&text, Line(finding), "\n");
  return WriteFile(file, text);
}

absl::StatusOr<std::vector<Finding>> ReadFindings(const std::string& file) {
  std::ifstream in(file);
  if (!in) return absl::NotFoundError(absl::StrCat("read ", file, ": cannot"));
  std::vector<Finding> findings;
  for (std::string line; std::getline(in, line);) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, '\t');
    if (!FromWords(words, Finding::Fields(findings.emplace_back())).ok())
      return absl::DataLossError(absl::StrCat("read ", file, ": what is \"", line, "\"?"));
  }
  return findings;
}

}  // namespace coconet::bench
