#include "bench/harness/finding.h"

#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

std::string OneLine(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"\t", " "}, {"\n", " "}});
}

std::string Line(const Finding& f) {
  const Timing& t = f.timing;
  return absl::StrCat(OneLine(f.side), "\t", OneLine(f.of), "\t", OneLine(f.name), "\t",
                      t.median_us, "\t", t.low_us, "\t", t.high_us, "\t", t.samples, "\t", f.steps,
                      "\t", f.preempted, "\t", OneLine(f.detail), "\n");
}

std::optional<Finding> ParseLine(absl::string_view line) {
  const std::vector<std::string> part = absl::StrSplit(line, '\t');
  Finding f;
  Timing& t = f.timing;
  if (part.size() != 10 || !absl::SimpleAtod(part[3], &t.median_us) ||
      !absl::SimpleAtod(part[4], &t.low_us) || !absl::SimpleAtod(part[5], &t.high_us) ||
      !absl::SimpleAtoi(part[6], &t.samples) || !absl::SimpleAtoi(part[7], &f.steps) ||
      !absl::SimpleAtoi(part[8], &f.preempted)) {
    return std::nullopt;
  }
  f.side = part[0];
  f.of = part[1];
  f.name = part[2];
  f.detail = part[9];
  return f;
}

}  // namespace

Finding FindingOf(const Measured& measured) {
  return {.side = measured.name,
          .timing = measured.timing,
          .steps = measured.steps,
          .preempted = measured.preempted};
}

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

absl::Status WriteFindings(const std::string& file, absl::Span<const Finding> findings) {
  std::ofstream out(file);
  for (const Finding& finding : findings) out << Line(finding);
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
