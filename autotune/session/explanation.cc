#include "autotune/session/explanation.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "autotune/measure/statistics.h"
#include "autotune/session/key.h"
#include "coconet/base/table.h"

namespace coconet {
namespace {

constexpr size_t kShortKey = 12;   // digits, as tables show them
constexpr size_t kLongPart = 40;   // of a field, in characters: longer ones are compared by words
constexpr size_t kLongValue = 90;  // of a field's difference, in characters

/// A key's text, taken apart.
struct KeyFields {
  std::vector<std::pair<std::string, std::string>> fields;  // before the program
  std::vector<std::string> program;                         // its lines
};

KeyFields FieldsOf(absl::string_view key_text) {
  KeyFields of;
  for (absl::string_view line : absl::StrSplit(key_text, '\n', absl::SkipEmpty())) {
    if (absl::ConsumePrefix(&line, "program: ")) {
      of.program.emplace_back(line);
      continue;
    }
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    of.fields.emplace_back(halves.first, halves.second);
  }
  return of;
}

const std::string* Find(const KeyFields& of, const std::string& field) {
  const auto at = absl::c_find_if(of.fields, [&](const auto& f) { return f.first == field; });
  return at == of.fields.end() ? nullptr : &at->second;
}

/// What a value is made of: "AMD EPYC", "4 cores", "24 GiB"; words of what is long.
std::vector<std::string> PartsOf(absl::string_view value) {
  std::vector<std::string> parts;
  for (absl::string_view part : absl::StrSplit(value, absl::ByString("; "))) {
    for (absl::string_view piece : absl::StrSplit(part, absl::ByString(", "))) {
      if (piece.size() <= kLongPart) {
        parts.emplace_back(piece);
      } else {
        for (absl::string_view word : absl::StrSplit(piece, ' ')) parts.emplace_back(word);
      }
    }
  }
  return parts;
}

/// The parts of `value` that `other` lacks; all of it where only their order differs.
std::string OnlyIn(const std::string& value, const std::string& other) {
  std::vector<std::string> theirs = PartsOf(other), own;
  for (std::string& part : PartsOf(value)) {
    const auto same = absl::c_find(theirs, part);
    if (same == theirs.end())
      own.push_back(std::move(part));
    else
      theirs.erase(same);
  }
  std::string text = own.empty() && theirs.empty() ? value : absl::StrJoin(own, ", ");
  if (text.size() > kLongValue) text = absl::StrCat(text.substr(0, kLongValue - 3), "...");
  return text.empty() ? "none of it" : text;
}

/// "cores (4 there, 2 here)"
std::string Difference(absl::string_view field, const std::string* there, const std::string* here) {
  const auto value_of = [&](const std::string* value) {
    return value == nullptr ? std::string(DefaultInKeys(field)) : *value;
  };
  const std::string a = value_of(there), b = value_of(here);
  return absl::StrCat(field, " (", a.empty() ? "none" : OnlyIn(a, b), " there, ",
                      b.empty() ? "none" : OnlyIn(b, a), " here)");
}

/// The program with each number replaced, so that programs which differ in sizes only are equal.
std::vector<std::string> WithoutNumbers(std::vector<std::string> lines) {
  for (std::string& line : lines) {
    std::string kept;
    for (char c : line) {
      if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) {
        kept += c;
      } else if (kept.empty() || kept.back() != '#') {
        kept += '#';
      }
    }
    line = std::move(kept);
  }
  return lines;
}

/// How two programs differ: by the first line that does.
std::string ProgramDifference(const std::vector<std::string>& there,
                              const std::vector<std::string>& here) {
  const bool sizes = WithoutNumbers(there) == WithoutNumbers(here);
  size_t line = 0;
  while (line < there.size() && line < here.size() && there[line] == here[line]) ++line;
  const auto at = [&](const std::vector<std::string>& program) {
    return line < program.size() ? absl::StrCat("\"", program[line].substr(0, kLongValue), "\"")
                                 : std::string("its end");
  };
  return absl::StrCat(sizes ? "sizes (" : "the program (", at(there), " there, ", at(here),
                      " here)");
}

size_t LinesThatDiffer(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  size_t lines = std::max(a.size(), b.size()) - std::min(a.size(), b.size());
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) lines += a[i] != b[i];
  return lines;
}

std::vector<std::string> DifferencesOf(const KeyFields& there, const KeyFields& here) {
  std::vector<std::string> differences;
  if (there.program != here.program)
    differences.push_back(ProgramDifference(there.program, here.program));
  for (const auto& [field, value] : here.fields) {
    const std::string* other = Find(there, field);
    if (other == nullptr || *other != value)
      differences.push_back(Difference(field, other, &value));
  }
  for (const auto& [field, value] : there.fields) {
    if (Find(here, field) == nullptr) differences.push_back(Difference(field, &value, nullptr));
  }
  return differences;
}

/// "RS, C" of each "fuse(RS, C)", or of another word than "fuse", in a schedule's words.
std::vector<std::string> GroupsOf(absl::string_view schedule, absl::string_view word) {
  std::vector<std::string> groups;
  const std::string opening = absl::StrCat(word, "(");
  for (size_t at = schedule.find(opening); at != absl::string_view::npos;
       at = schedule.find(opening, at + 1)) {
    const size_t begin = at + opening.size();
    size_t end = begin;
    for (int open = 1; end < schedule.size(); ++end) {
      open += (schedule[end] == '(') - (schedule[end] == ')');
      if (open == 0) break;
    }
    groups.emplace_back(schedule.substr(begin, end - begin));
  }
  return groups;
}

std::string FusionsText(absl::string_view schedule) {
  std::vector<std::string> fused, words;
  for (std::string& group : GroupsOf(schedule, "fuse")) {
    if (absl::StrContains(group, ", ")) fused.push_back(std::move(group));
  }
  for (const std::string& group : fused)
    words.push_back(absl::StrCat("one kernel does ", group, " as it goes"));
  for (const std::string& group : GroupsOf(schedule, "ol"))
    words.push_back(absl::StrCat(group, " overlap"));
  if (fused.empty()) words.push_back("no kernel fuses communication with computation");
  return absl::StrJoin(words, "; ");
}

/// What the best gained over the plain schedule.
std::string GainText(const TuningRecord& record) {
  const Timing &best = record.best.timing, &plain = record.baseline.timing;
  if (best.samples == 0) return "it was not timed: nothing was tuned";
  if (IsOnSimulatedGpus(record)) return "times of simulated GPUs say nothing of real ones";
  if (SameVariant(record.best, record.baseline))
    return absl::StrCat(TimeText(best.median_us), " a step; it is the plain schedule");
  return absl::StrFormat(
      "%s a step; the plain schedule, %s, takes %s: it gains %s a step, %s",
      TimeText(best.median_us), record.baseline.schedule, TimeText(plain.median_us),
      TimeText(std::max(plain.median_us - best.median_us, 0.0)), Text(SpeedUpOf(record)));
}

/// Why a variant is not the best.
std::string LostText(const TuningRecord& record, const VariantResult& v) {
  const std::string reason = v.reason.substr(0, v.reason.find('\n'));
  if (v.timing.samples == 0)
    return absl::StrCat(Name(v.verdict), reason.empty() ? "" : ": ", reason);
  if (IsOnSimulatedGpus(record)) return reason;
  const double ratio = v.timing.median_us / std::max(record.best.timing.median_us, 1e-9);
  return absl::StrCat(absl::StrFormat("%.2fx as long", ratio), reason.empty() ? "" : ": ", reason);
}

/// A row per schedule that does not run: its fastest variant, or why none was timed.
std::string OthersText(const TuningRecord& record, absl::Span<const VariantResult> variants,
                       absl::string_view library) {
  std::vector<const VariantResult*> order;
  for (const VariantResult& v : variants) order.push_back(&v);
  absl::c_stable_sort(order, [](const VariantResult* a, const VariantResult* b) {
    return std::tuple(a->timing.samples == 0, a->timing.median_us) <
           std::tuple(b->timing.samples == 0, b->timing.median_us);
  });
  std::set<std::string> shown = {record.best.schedule};
  std::vector<TableCells> rows;
  for (const VariantResult* v : order) {
    if (!shown.insert(v->schedule).second) continue;
    rows.push_back(
        {v->schedule, absl::StrReplaceAll(v->protocol, {{"library", library}}),
         v->timing.samples > 0 && !IsOnSimulatedGpus(record) ? TimeText(v->timing.median_us) : "",
         LostText(record, *v)});
  }
  if (rows.empty()) return "";
  const TableColumn columns[] = {
      {"other schedules"}, {"protocol"}, {"fastest", true}, {"why it does not run"}};
  return absl::StrCat("\n", TextTable(columns, rows));
}

}  // namespace

std::string ProgramOfKey(absl::string_view key_text) {
  for (absl::string_view line : absl::StrSplit(key_text, '\n')) {
    if (absl::ConsumePrefix(&line, "program: program ")) return std::string(line);
  }
  return "";
}

std::string ProgramText(absl::string_view key_text) {
  std::string name, type;
  int64_t tensors = 0;  // of a list
  for (absl::string_view line : absl::StrSplit(key_text, '\n')) {
    if (!absl::ConsumePrefix(&line, "program: ")) continue;
    if (absl::ConsumePrefix(&line, "program ")) name = std::string(line);
    if (absl::ConsumePrefix(&line, "sizes ")) tensors = absl::c_count(line, ',') + 1;
    const std::vector<absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(" : ", 1));
    if (type.empty() && halves.size() == 2)
      type = std::string(halves[1].substr(0, halves[1].find(tensors > 0 ? '[' : ']')));
  }
  return absl::StrCat(name.empty() ? "the program" : name, " ", type,
                      tensors > 0 ? absl::StrCat(", ", tensors, " tensors") : "]");
}

std::string NearestText(absl::string_view key_text, absl::Span<const KeyOfRecord> stored) {
  const KeyFields here = FieldsOf(key_text);
  const std::string name = ProgramOfKey(key_text);
  using Distance = std::pair<size_t, size_t>;  // fields, lines of the program
  const KeyOfRecord* nearest = nullptr;
  Distance least;
  for (const KeyOfRecord& record : stored) {
    if (ProgramOfKey(record.key_text) != name) continue;
    const KeyFields there = FieldsOf(record.key_text);
    const Distance distance = {DifferencesOf(there, here).size(),
                               LinesThatDiffer(there.program, here.program)};
    if (nearest != nullptr && distance >= least) continue;
    nearest = &record;
    least = distance;
  }
  if (nearest == nullptr) {
    return stored.empty()
               ? "there is no record at all"
               : absl::StrCat("none of ", stored.size(), " records is of ",
                              name.empty() ? "the program" : absl::StrCat("a program ", name));
  }
  return absl::StrCat("the nearest, ", nearest->key.substr(0, kShortKey), ", differs in ",
                      absl::StrJoin(DifferencesOf(FieldsOf(nearest->key_text), here), "; "));
}

std::string ExplainRecord(const TuningRecord& record, absl::Span<const VariantResult> variants,
                          absl::string_view library) {
  const VariantResult& best = record.best;
  return absl::StrCat(ProgramText(record.key_text), " runs ", best.schedule, " (",
                      absl::StrReplaceAll(best.protocol, {{"library", library}}), ", ",
                      Text(best.config), ")\n", FusionsText(best.schedule), "\n", GainText(record),
                      "\n", best.timing.samples > 0 ? absl::StrCat(SearchText(record), "\n") : "",
                      OthersText(record, variants, library));
}

}  // namespace coconet
