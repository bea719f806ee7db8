#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/command/sweep_flags.h"
#include "autotune/command/sweep_report.h"
#include "autotune/store/tuning_cache.h"
#include "coconet/base/env.h"
#include "coconet/base/table.h"

namespace coconet {
namespace {

constexpr int kBadInput = 2;
constexpr char kHelp[] = R"(cache: what the tuning cache remembers

  cache list [--cache=FILE]        one line per tuned program, the newest first
  cache show KEY [--cache=FILE]    one of them: its key's text and all its variants;
                                   the beginning of KEY will do
)";

/// The value of a line "field: value" of a key's text.
std::string Field(const std::string& key_text, absl::string_view field) {
  for (absl::string_view line : absl::StrSplit(key_text, '\n')) {
    if (absl::ConsumePrefix(&line, field) && absl::ConsumePrefix(&line, ": "))
      return std::string(line);
  }
  return "";
}

/// "adam f32[16777216]", "lamb f32, 398 tensors": its name, and the type of its first tensor.
std::string ProgramText(const std::string& key_text) {
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
  return absl::StrCat(name, " ", type, tensors > 0 ? absl::StrCat(", ", tensors, " tensors") : "]");
}

void PrintList(TuningCache& cache) {
  const int64_t now = absl::ToUnixSeconds(absl::Now());
  std::vector<TableCells> rows;
  for (const TuningRecord& r : cache.List()) {
    rows.push_back({r.key.substr(0, 12), ProgramText(r.key_text), Field(r.key_text, "ranks"),
                    r.best.schedule, TimeText(r.best.timing.median_us), SpeedupText(r, r.best),
                    absl::StrCat(AgeText(now - r.created_s), r.complete ? "" : ", incomplete")});
  }
  const TableColumn columns[] = {{"key"},          {"program"},       {"ranks", true}, {"best"},
                                 {"median", true}, {"speedup", true}, {"tuned"}};
  std::fputs(TextTable(columns, rows).c_str(), stdout);
}

/// A line for each verification of the best variant.
std::string TrustText(const TuningRecord& record) {
  const int64_t now = absl::ToUnixSeconds(absl::Now());
  std::string text;
  for (const Trust& t : record.trust) {
    absl::StrAppend(&text, "verified ", AgeText(now - t.verified_s), " on machine ",
                    t.machine.substr(0, 12), ", code ", t.fingerprint.substr(0, 12), ": ", t.checks,
                    "\n");
  }
  return text.empty() ? "not verified yet by this version: verified before it is dispatched\n"
                      : text;
}

int Show(TuningCache& cache, const std::string& key) {
  const std::optional<TuningRecord> record = cache.FindByKey(key);
  if (!record.has_value()) {
    std::fprintf(stderr, "cache: no record %s in %s; see cache list\n", key.c_str(),
                 cache.file().c_str());
    return kBadInput;
  }
  std::printf("key %s\n%s\n%s\n%s", record->key.c_str(), record->key_text.c_str(),
              VariantTable(*record, cache.Variants(record->key), "library").c_str(),
              TrustText(*record).c_str());
  return 0;
}

int Complain(absl::string_view what) {
  std::fprintf(stderr, "cache: %s\n", std::string(what).c_str());
  return kBadInput;
}

int Main(const std::vector<std::string>& args) {
  std::string file =
      GetEnv().cache_dir.empty() ? "" : absl::StrCat(GetEnv().cache_dir, "/tuning.db");
  std::vector<std::string> words;
  for (const std::string& arg : args) {
    if (arg == "--help" || arg == "-h") {
      std::fputs(kHelp, stdout);
      return 0;
    }
    if (absl::string_view rest = arg; absl::ConsumePrefix(&rest, "--cache=")) {
      file = ResolvePath(rest, UserFolder());
    } else if (absl::StartsWith(arg, "-")) {
      return Complain(absl::StrCat("unknown flag ", arg, "; see --help"));
    } else {
      words.push_back(arg);
    }
  }
  const bool list = words.size() == 1 && words[0] == "list",
             show = words.size() == 2 && words[0] == "show";
  if (!list && !show) return Complain("want 'list' or 'show KEY'; see --help");
  bool warned = false;
  const std::unique_ptr<TuningCache> cache = TuningCache::Open(file, [&](absl::string_view text) {
    Complain(text);
    warned = true;
  });
  const int code = list ? (PrintList(*cache), 0) : Show(*cache, words[1]);
  return warned && code == 0 ? kBadInput : code;
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  return coconet::Main(std::vector<std::string>(argv + 1, argv + argc));
}
