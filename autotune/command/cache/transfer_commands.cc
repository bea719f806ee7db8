#include "autotune/command/cache/transfer_commands.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/command/paths.h"
#include "autotune/command/sweep_report.h"
#include "autotune/measure/statistics.h"
#include "autotune/search/parts.h"
#include "autotune/session/explanation.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/transfer/diff.h"
#include "autotune/store/transfer/transfer.h"
#include "coconet/base/json.h"
#include "coconet/base/status.h"
#include "coconet/base/table.h"
#include "coconet/schedule/transformation.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

/// A combination of parts is parsed with its program when a job takes it (ProgramLoader).
absl::Status CheckTrace(absl::string_view trace) {
  return IsCombination(trace) ? absl::OkStatus() : ParseTrace(trace).status();
}

absl::StatusOr<Database> OpenOther(const std::string& file) {
  absl::StatusOr<Database> db = OpenUnchanged(file, /*foreign=*/false);
  if (db.ok()) return db;
  return WithContext(db.status(), file);
}

absl::StatusOr<ImportSummary> Take(Database& into, const CacheFlags& flags,
                                   const std::string& file) {
  const ImportTerms terms{flags.dry_run, CheckTrace};
  if (flags.command == "merge") {
    ASSIGN_OR_RETURN(Database from, OpenOther(file));
    return MergeFrom(into, from, terms);
  }
  std::error_code error;
  std::ifstream in(file, std::ios::binary);
  if (!in || fs::is_directory(file, error))
    return absl::NotFoundError(absl::StrCat("cannot read ", file));
  return ImportFrom(into, in, terms);
}

void Print(const ImportSummary& summary, const CacheFlags& flags) {
  const absl::string_view unit = flags.command == "merge" ? "record" : "line";
  std::vector<JsonText> rejected;
  for (const auto& [line, reason] : summary.rejected) {
    if (flags.json)
      rejected.push_back(JsonObject().Set(unit, line).Set("reason", reason).Text());
    else
      Complain(absl::StrCat(unit, " ", line, " is rejected: ", reason));
  }
  if (flags.json) {
    std::printf("%s\n", JsonObject()
                            .Set("dry_run", flags.dry_run)
                            .Set("offered", summary.offered)
                            .Set("added", summary.added)
                            .Set("replaced", summary.replaced)
                            .Set("kept", summary.kept)
                            .Set("kept_certified", summary.kept_certified)
                            .Set("buckets", summary.buckets)
                            .Set("rejected", JsonList(rejected))
                            .Text()
                            .text.c_str());
    return;
  }
  std::printf(
      "%d records offered: %d %s, %d replace another one, of %d the stored one is kept as "
      "it is as good, of %d as it is complete and was measured here, %d rejected\n",
      static_cast<int>(summary.offered), static_cast<int>(summary.added),
      flags.dry_run ? "would be added" : "added", static_cast<int>(summary.replaced),
      static_cast<int>(summary.kept), static_cast<int>(summary.kept_certified),
      static_cast<int>(summary.rejected.size()));
  if (summary.buckets > 0)
    std::printf("%d ranges of sizes %s\n", static_cast<int>(summary.buckets),
                flags.dry_run ? "would be added" : "added");
}

JsonValue Number(const std::optional<double>& number) {
  return number.has_value() ? JsonValue(*number) : JsonValue(nullptr);
}
std::string PercentText(const std::optional<double>& share) {
  return share.has_value() ? absl::StrFormat("%+.1f %%", 100 * *share) : "not timed there";
}
double Speedup(const TuningRecord& r) {
  return r.best.timing.median_us > 0 ? r.baseline.timing.median_us / r.best.timing.median_us : 0;
}
template <class Variant>  // VariantResult, SizeBucket
std::string VariantText(const Variant& v) {
  return absl::StrCat(v.schedule, " / ", Text(v.config));
}

JsonText Json(const CacheDiff& diff) {
  std::vector<JsonText> both, only_a, only_b;
  for (const RecordPair& pair : diff.both) {
    both.push_back(JsonObject()
                       .Set("key", pair.a.key)
                       .Set("program", ProgramText(pair.a.key_text))
                       .Set("same_winner", pair.same_winner)
                       .Set("a", VariantText(pair.a.best))
                       .Set("b", VariantText(pair.b.best))
                       .Set("a_us", pair.a.best.timing.median_us)
                       .Set("b_us", pair.b.best.timing.median_us)
                       .Set("a_speedup", Speedup(pair.a))
                       .Set("b_speedup", Speedup(pair.b))
                       .Set("a_in_b", Number(pair.a_in_b))
                       .Set("b_in_a", Number(pair.b_in_a))
                       .Text());
  }
  for (const auto& [records, objects] :
       {std::pair(&diff.only_a, &only_a), std::pair(&diff.only_b, &only_b)}) {
    for (const TuningRecord& r : *records)
      objects->push_back(
          JsonObject().Set("key", r.key).Set("program", ProgramText(r.key_text)).Text());
  }
  std::vector<JsonText> sizes;
  for (const BucketPair& pair : diff.sizes) {
    sizes.push_back(JsonObject()
                        .Set("program", ProgramText(pair.family_text))
                        .Set("sizes", Text(pair.box))
                        .Set("same_variant", pair.same_variant)
                        .Set("a", VariantText(pair.a))
                        .Set("b", VariantText(pair.b))
                        .Text());
  }
  return JsonObject()
      .Set("both", JsonList(both))
      .Set("only_a", JsonList(only_a))
      .Set("only_b", JsonList(only_b))
      .Set("sizes", JsonList(sizes))
      .Text();
}

void Print(const CacheDiff& diff) {
  std::vector<TableCells> rows;
  int same = 0;
  for (const RecordPair& pair : diff.both) {
    same += pair.same_winner ? 1 : 0;
    rows.push_back({pair.a.key.substr(0, 12), ProgramText(pair.a.key_text),
                    pair.same_winner ? "same" : "differ", SpeedupText(pair.a, pair.a.best),
                    SpeedupText(pair.b, pair.b.best), PercentText(pair.a_in_b),
                    PercentText(pair.b_in_a), pair.a.best.schedule,
                    pair.same_winner ? "" : pair.b.best.schedule});
  }
  const TableColumn columns[] = {
      {"key"},      {"program"},        {"winners"},        {"A", true},
      {"B", true},  {"A's in B", true}, {"B's in A", true}, {"best in A"},
      {"best in B"}};
  if (!rows.empty()) std::printf("%s\n", TextTable(columns, rows).c_str());
  for (const auto& [records, name] : {std::pair(&diff.only_a, "A"), std::pair(&diff.only_b, "B")}) {
    for (const TuningRecord& r : *records)
      std::printf("only in %s: %s, %s\n", name, r.key.substr(0, 12).c_str(),
                  ProgramText(r.key_text).c_str());
  }
  std::printf("%d keys in both, %d with the same winner; %d only in A, %d only in B\n",
              static_cast<int>(diff.both.size()), same, static_cast<int>(diff.only_a.size()),
              static_cast<int>(diff.only_b.size()));
  for (const BucketPair& pair : diff.sizes) {
    if (pair.same_variant) continue;
    std::printf("%s, sizes %s: A runs %s, B runs %s\n", ProgramText(pair.family_text).c_str(),
                Text(pair.box).c_str(), VariantText(pair.a).c_str(), VariantText(pair.b).c_str());
  }
}

/// Writes the export to `file`, a part of which is never left there.
absl::StatusOr<int64_t> Export(Database& db, const std::set<std::string>& keys,
                               const std::string& file) {
  std::error_code error;
  const bool direct = fs::exists(file, error) && !fs::is_regular_file(file, error);
  const std::string written = direct ? file : absl::StrCat(file, ".", getpid(), ".tmp");
  std::ofstream out(written, std::ios::binary);
  if (!out) return absl::FailedPreconditionError(absl::StrCat("cannot write ", file));
  absl::StatusOr<int64_t> count =
      ExportTo(out, db, [&](const TuningRecord& record) { return keys.count(record.key) > 0; });
  out.close();
  if (direct) return count;
  if (count.ok()) fs::rename(written, file, error);
  if (count.ok() && !error) return count;
  std::error_code ignored;
  fs::remove(written, ignored);
  if (!count.ok()) return count;
  return absl::FailedPreconditionError(absl::StrCat("cannot write ", file, ": ", error.message()));
}

}  // namespace

int ExportRecords(TuningCache& cache, const std::vector<LayeredRecord>& chosen,
                  const CacheFlags& flags) {
  if (cache.db() == nullptr) return Complain(absl::StrCat("export: cannot read ", cache.file()));
  std::set<std::string> keys;
  for (const LayeredRecord& listed : chosen) {
    if (listed.layer == Layer::kUser) keys.insert(listed.record.key);
  }
  if (keys.empty())
    return Complain(absl::StrCat("export: no record of ", flags.which, " in ", cache.file()));
  const std::string file = ResolvePath(flags.words[0], UserFolder());
  const absl::StatusOr<int64_t> count = Export(*cache.db(), keys, file);
  if (!count.ok()) return Complain(absl::StrCat("export: ", count.status().message()));
  std::fprintf(stderr, "%d records written to %s\n", static_cast<int>(*count), file.c_str());
  return 0;
}

int ImportRecords(TuningCache& cache, const CacheFlags& flags) {
  if (!cache.stores())
    return Complain(absl::StrCat(flags.command, ": cannot write ", cache.file()));
  const std::string file = ResolvePath(flags.words[0], UserFolder());
  std::error_code error;
  if (fs::equivalent(file, cache.file(), error)) {
    return Complain(
        absl::StrCat(flags.command, ": ", file, " is the tuning cache itself; give another file"));
  }
  const absl::StatusOr<ImportSummary> summary = Take(*cache.db(), flags, file);
  if (!summary.ok()) return Complain(absl::StrCat(flags.command, ": ", summary.status().message()));
  Print(*summary, flags);
  return summary->rejected.empty() ? 0 : kBadInput;
}

int PrintDiff(const CacheFlags& flags) {
  absl::StatusOr<Database> a = OpenOther(ResolvePath(flags.words[0], UserFolder()));
  if (!a.ok()) return Complain(absl::StrCat("diff: ", a.status().message()));
  absl::StatusOr<Database> b = OpenOther(ResolvePath(flags.words[1], UserFolder()));
  if (!b.ok()) return Complain(absl::StrCat("diff: ", b.status().message()));
  const absl::StatusOr<CacheDiff> diff = DiffOf(*a, *b);
  if (!diff.ok()) return Complain(absl::StrCat("diff: ", diff.status().message()));
  if (flags.json)
    std::printf("%s\n", Json(*diff).text.c_str());
  else
    Print(*diff);
  return 0;
}

}  // namespace coconet
