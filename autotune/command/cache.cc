#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/command/cache/cache_flags.h"
#include "autotune/command/cache/transfer_commands.h"
#include "autotune/command/cache/upkeep_commands.h"
#include "autotune/command/commands.h"
#include "autotune/command/console/terminal.h"
#include "autotune/command/paths.h"
#include "autotune/command/records.h"
#include "autotune/command/sweep_flags.h"
#include "autotune/command/sweep_program.h"
#include "autotune/command/sweep_report.h"
#include "autotune/measure/statistics.h"
#include "autotune/session/explanation.h"
#include "autotune/session/session.h"
#include "autotune/store/tuning_cache.h"
#include "coconet/base/env.h"
#include "coconet/base/json.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"
#include "coconet/base/table.h"
#include "runtime/world.h"

namespace coconet {
namespace {

constexpr int kDefaultRanks = 2;
constexpr size_t kNarrow = 20;  // characters that a column keeps on a narrow terminal

/// The value of a line "field: value" of a key's text.
std::string Field(const std::string& key_text, absl::string_view field) {
  for (absl::string_view line : absl::StrSplit(key_text, '\n')) {
    if (absl::ConsumePrefix(&line, field) && absl::ConsumePrefix(&line, ": "))
      return std::string(line);
  }
  return "";
}

/// The records that the command is for; of several of a key only the one that jobs use, unless all
/// are listed.
std::vector<LayeredRecord> Chosen(TuningCache& cache, const CacheFlags& flags) {
  std::vector<LayeredRecord> chosen;
  for (LayeredRecord& listed : cache.ListLayers()) {
    if (listed.shadowed && flags.command != "list") continue;
    if (IsMeant(listed.record, flags.which)) chosen.push_back(std::move(listed));
  }
  return chosen;
}

JsonText RecordJson(const LayeredRecord& listed) {
  const TuningRecord& r = listed.record;
  return JsonObject()
      .Set("key", r.key)
      .Set("program", ProgramText(r.key_text))
      .Set("ranks", Field(r.key_text, "ranks"))
      .Set("best", r.best.schedule)
      .Set("median_us", r.best.timing.median_us)
      .Set("baseline_us", r.baseline.timing.median_us)
      .Set("complete", r.complete)
      .Set("search", SearchText(r))
      .Set("created_s", r.created_s)
      .Set("used_s", listed.used_s)
      .Set("layer", std::string(Name(listed.layer)))
      .Set("file", listed.file)
      .Set("shadowed", listed.shadowed)
      .Set("imported", r.imported)
      .Set("pinned", r.pinned)
      .Text();
}

void PrintList(absl::Span<const LayeredRecord> records, bool json) {
  const int64_t now = absl::ToUnixSeconds(absl::Now());
  std::vector<JsonText> objects;
  std::vector<TableCells> rows;
  for (const LayeredRecord& listed : records) {
    const TuningRecord& r = listed.record;
    objects.push_back(RecordJson(listed));
    rows.push_back({r.key.substr(0, 12), ProgramText(r.key_text), Field(r.key_text, "ranks"),
                    r.best.schedule, TimeText(r.best.timing.median_us), SpeedupText(r, r.best),
                    absl::StrCat(Name(listed.layer), listed.shadowed ? ", not used" : ""),
                    absl::StrCat(AgeText(now - r.created_s), r.complete ? "" : ", incomplete",
                                 r.imported ? ", imported" : "", r.pinned ? ", pinned" : "")});
  }
  if (json) {
    std::printf("%s\n", JsonList(objects).text.c_str());
    return;
  }
  const TableColumn columns[] = {
      {"key"},          {"program", false, kNarrow}, {"ranks", true}, {"best", false, kNarrow},
      {"median", true}, {"speedup", true},           {"layer"},       {"tuned"}};
  std::fputs(TextTable(columns, rows, ColumnsOf(stdout)).c_str(), stdout);
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

void PrintVariants(TuningCache& cache, const LayeredRecord& listed, const CacheFlags& flags) {
  const TuningRecord& record = listed.record;
  const std::vector<VariantResult> variants = cache.Variants(record.key);
  if (flags.json) {
    std::fputs(VariantJson(record, variants, ProgramText(record.key_text),
                           std::atoi(Field(record.key_text, "ranks").c_str()), /*from_cache=*/true)
                   .c_str(),
               stdout);
  } else if (flags.command == "why") {
    std::printf("key %s, %s, %s ranks\n\n%s\n%s\n", record.key.substr(0, 12).c_str(),
                ProgramText(record.key_text).c_str(), Field(record.key_text, "ranks").c_str(),
                ScheduleTable(record, variants, "library", ColumnsOf(stdout)).c_str(),
                ExplainRecord(record, {}, "library").c_str());
  } else {
    std::printf("key %s\nlayer %s, %s\n%s\n%s\n%s\n%s", record.key.c_str(),
                std::string(Name(listed.layer)).c_str(), listed.file.c_str(),
                record.key_text.c_str(),
                VariantTable(record, variants, "library", ColumnsOf(stdout)).c_str(),
                SearchText(record).c_str(), TrustText(record).c_str());
  }
}

/// Prints, or lifts, what leaves variants out, also of keys without a record.
int Quarantine(TuningCache& cache, const std::vector<LayeredRecord>& chosen,
               const CacheFlags& flags) {
  std::map<std::string, std::string> programs;  // by key
  for (const auto& [r, layer, file, shadowed, used_s] : chosen)
    programs[r.key] = ProgramText(r.key_text);
  for (const std::string& key : cache.Keys()) {
    if (flags.which == "all" || absl::StartsWith(key, flags.which)) programs.try_emplace(key, "");
  }
  std::vector<JsonText> objects;
  std::vector<TableCells> rows;
  for (const auto& [key, program] : programs) {
    for (const VariantResult& v : cache.Failures(key)) {
      objects.push_back(JsonObject()
                            .Set("key", key)
                            .Set("program", program)
                            .Set("schedule", v.schedule)
                            .Set("config", Text(v.config))
                            .Set("reason", v.reason)
                            .Text());
      rows.push_back({key.substr(0, 12), program, Words(v), v.reason});
    }
    if (flags.lift) cache.Forgive(key);
  }
  if (flags.json) {
    std::printf("%s\n", JsonList(objects).text.c_str());
  } else if (rows.empty()) {
    std::printf("no variant is left out\n");
  } else {
    const TableColumn columns[] = {
        {"key"}, {"program", false, kNarrow}, {"variant", false, kNarrow}, {"why", false, kNarrow}};
    std::fputs(TextTable(columns, rows, ColumnsOf(stdout)).c_str(), stdout);
    if (flags.lift)
      std::printf("%d are tried again by the next tuning\n", static_cast<int>(rows.size()));
  }
  return 0;
}

double MedianError(const std::vector<Prediction>& predictions) {
  std::vector<double> errors;
  for (const Prediction& p : predictions) errors.push_back(std::fabs(p.error()));
  return Median(std::move(errors));
}

std::string PercentText(double share) { return absl::StrFormat("%+.0f %%", 100 * share); }

JsonText PredictionJson(const Prediction& p) {
  return JsonObject()
      .Set("calibration", p.calibration)
      .Set("work", p.work)
      .Set("label", p.label)
      .Set("predicted_us", p.predicted_us)
      .Set("measured_us", p.measured_us)
      .Set("error", p.error())
      .Set("created_s", p.created_s)
      .Text();
}

/// Calibrations with their median errors, and the predictions that were farthest off.
int PrintPredictions(TuningCache& cache, bool json) {
  std::vector<Prediction> all = cache.Predictions("");
  if (json) {
    std::vector<JsonText> objects;
    for (const Prediction& p : all) objects.push_back(PredictionJson(p));
    std::printf("%s\n", JsonList(objects).text.c_str());
    return 0;
  }
  const int64_t now = absl::ToUnixSeconds(absl::Now());
  std::vector<TableCells> rows;
  for (const Calibration& c : cache.Calibrations()) {
    const std::vector<Prediction> of = cache.Predictions(c.key);
    rows.push_back({c.key.substr(0, 12), Field(c.key_text, "ranks"), AgeText(now - c.created_s),
                    absl::StrCat(of.size()),
                    of.empty() ? "" : absl::StrFormat("%.1f %%", 100 * MedianError(of))});
  }
  const TableColumn columns[] = {
      {"calibration"}, {"ranks", true}, {"made"}, {"predictions", true}, {"median error", true}};
  std::fputs(TextTable(columns, rows).c_str(), stdout);
  if (all.empty()) return 0;
  constexpr size_t kWorst = 10;
  absl::c_stable_sort(all, [](const Prediction& a, const Prediction& b) {
    return std::fabs(a.error()) > std::fabs(b.error());
  });
  all.resize(std::min(all.size(), kWorst));
  rows.clear();
  for (const Prediction& p : all) {
    rows.push_back({p.label, TimeText(p.predicted_us), TimeText(p.measured_us),
                    PercentText(p.error()), AgeText(now - p.created_s)});
  }
  const TableColumn worst[] = {
      {"farthest off"}, {"predicted", true}, {"measured", true}, {"error", true}, {"when"}};
  std::printf("\n%s", TextTable(worst, rows).c_str());
  return 0;
}

/// What a command that changes records does with one, and says of it.
struct Change {
  const char* command;
  void (TuningCache::*act)(const std::string& key);
  const char* said;
};
constexpr Change kChanges[] = {
    {"verify", &TuningCache::Distrust, "is verified again before it runs"},
    {"retune", &TuningCache::Retune, "is tuned again by the next job"},
    {"forget", &TuningCache::Forget, "is forgotten"},
};

/// Prints what the cache has for a program here, or how the nearest record differs.
int PrintWhyHere(const CacheFlags& flags) {
  std::vector<std::string> args = {flags.which};
  if (!flags.file.empty()) args.push_back(absl::StrCat("--cache=", flags.file));
  args.insert(args.end(), flags.sweep.begin(), flags.sweep.end());
  absl::StatusOr<SweepFlags> sweep = ParseSweepFlags(args, UserFolder());
  if (!sweep.ok()) return Complain(sweep.status().message());
  const absl::StatusOr<Graph> program = LoadSweepProgram(*sweep);
  if (!program.ok()) return Complain(program.status().message());
  SessionOptions options;
  options.cache_file = sweep->cache;
  options.policy = Policy::kCacheOnly;
  options.sum_order = sweep->sum_order;
  options.sum_rounding = sweep->sum_rounding;
  options.nans = sweep->nans;
  options.memory_limit = sweep->memory_limit;
  options.warn = [](absl::string_view text) { Complain(text); };
  const absl::Status status = RunRanks(
      WorldOptions{.ranks = sweep->ranks > 0 ? sweep->ranks
                            : UnderMpi()     ? 0
                                             : kDefaultRanks,
                   .stages = sweep->stages,
                   .nodes = sweep->nodes,
                   .backend = sweep->backend},
      [&](Session& session) -> absl::Status {
        ASSIGN_OR_RETURN(const std::string text, session.Explain(program, sweep->sizes));
        if (session.rank() == 0) std::fputs(text.c_str(), stdout);
        return absl::OkStatus();
      },
      options);
  return status.ok() ? 0 : Complain(status.message());
}

/// Carries out a Change. A record of another layer cannot be forgotten.
int Carry(TuningCache& cache, const Change& change, const LayeredRecord& listed) {
  const TuningRecord& record = listed.record;
  if (change.act == &TuningCache::Forget && listed.layer != Layer::kUser) {
    return Complain(absl::StrCat(record.key.substr(0, 12), " is in the cache of the ",
                                 Name(listed.layer), ", ", listed.file, ", which is only read"));
  }
  (cache.*change.act)(record.key);
  if (!cache.stores()) return kBadInput;  // the cache has said why
  std::printf("%s, %s, %s\n", record.key.substr(0, 12).c_str(),
              ProgramText(record.key_text).c_str(), change.said);
  return 0;
}

int Act(TuningCache& cache, const CacheFlags& flags) {
  if (flags.command == "predictions") return PrintPredictions(cache, flags.json);
  if (flags.command == "stats") return PrintStatistics(cache, flags);
  if (flags.command == "prune") return PruneCache(cache, flags);
  if (flags.command == "import" || flags.command == "merge") return ImportRecords(cache, flags);
  const std::vector<LayeredRecord> chosen = Chosen(cache, flags);
  if (flags.command == "quarantine") return Quarantine(cache, chosen, flags);
  if (chosen.empty() && flags.which != "all") {
    return Complain(absl::StrCat("no record of ", flags.which, " in ", cache.file(),
                                 "; want the beginning of a key, a program's name, or all; see "
                                 "cache list"));
  }
  if (flags.command == "list") PrintList(chosen, flags.json);
  if (flags.command == "export") return ExportRecords(cache, chosen, flags);
  if (flags.command == "pin" || flags.command == "unpin") return PinRecord(cache, chosen, flags);
  for (const LayeredRecord& listed : chosen) {
    if (flags.command == "show" || flags.command == "why") PrintVariants(cache, listed, flags);
    for (const Change& change : kChanges) {
      if (flags.command != change.command) continue;
      if (const int code = Carry(cache, change, listed); code != 0) return code;
    }
  }
  return 0;
}

}  // namespace

int RunCache(const std::vector<std::string>& args) {
  const absl::StatusOr<CacheFlags> flags = ParseCacheFlags(args);
  if (!flags.ok()) return Complain(flags.status().message());
  if (flags->help) {
    std::fputs(std::string(CacheHelp()).c_str(), stdout);
    return 0;
  }
  if (flags->command == "diff") return PrintDiff(*flags);
  const CacheLayers layers = LayersOfCommand(*flags);
  std::error_code error;
  if (!layers.user.empty() && layers.foreign.empty() && !flags->Creates() &&
      !std::filesystem::exists(layers.user, error)) {
    return Complain(absl::StrCat("there is no ", layers.user,
                                 "; coconet sweep makes one, --cache names another"));
  }
  if (!flags->sweep.empty()) return PrintWhyHere(*flags);
  bool warned = false;
  const std::unique_ptr<TuningCache> cache = TuningCache::Open(
      layers,
      [&](absl::string_view text) {
        Complain(text);
        warned = true;
      },
      flags->Writes() ? TuningCache::Use::kKeep : TuningCache::Use::kRead);
  const int code = Act(*cache, *flags);
  return warned && code == 0 ? kBadInput : code;
}

}  // namespace coconet
