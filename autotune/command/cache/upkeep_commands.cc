#include "autotune/command/cache/upkeep_commands.h"

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/command/sweep_report.h"
#include "autotune/measure/statistics.h"
#include "autotune/session/explanation.h"
#include "autotune/store/upkeep/prune.h"
#include "autotune/store/upkeep/statistics.h"
#include "coconet/base/env.h"
#include "coconet/base/json.h"
#include "coconet/base/status.h"
#include "coconet/base/table.h"

namespace coconet {
namespace {

std::string BytesText(int64_t bytes) {
  return bytes < (1 << 20) ? absl::StrFormat("%.1f KiB", static_cast<double>(bytes) / (1 << 10))
                           : absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

/// The numbers of a layer's file.
struct LayerStatistics {
  ForeignFile of;
  CacheStatistics numbers;
};

absl::StatusOr<std::vector<LayerStatistics>> StatisticsOf(TuningCache& cache) {
  std::vector<LayerStatistics> all;
  if (cache.db() != nullptr) {
    ASSIGN_OR_RETURN(CacheStatistics numbers, ReadStatistics(*cache.db()));
    all.push_back({{Layer::kUser, cache.file()}, numbers});
  }
  for (const std::unique_ptr<ForeignCache>& foreign : cache.foreign()) {
    if (foreign->db() == nullptr) continue;
    ASSIGN_OR_RETURN(CacheStatistics numbers, ReadStatistics(*foreign->db()));
    all.push_back({foreign->file(), numbers});
  }
  absl::c_stable_sort(all, [](const LayerStatistics& a, const LayerStatistics& b) {
    return a.of.layer < b.of.layer;
  });
  return all;
}

/// The number of keys of which two layers have different winners.
int64_t CountFlips(TuningCache& cache) {
  if (cache.foreign().empty()) return 0;
  std::map<std::string, std::vector<VariantResult>> winners;
  for (LayeredRecord& listed : cache.ListLayers())
    winners[listed.record.key].push_back(std::move(listed.record.best));
  return absl::c_count_if(winners, [](const auto& of_key) {
    const std::vector<VariantResult>& all = of_key.second;
    return absl::c_any_of(all, [&](const VariantResult& v) {
      return v.trace != all[0].trace || !(v.config == all[0].config);
    });
  });
}

JsonText Json(const LayerStatistics& layer) {
  const CacheStatistics& n = layer.numbers;
  return JsonObject()
      .Set("layer", std::string(Name(layer.of.layer)))
      .Set("file", layer.of.file)
      .Set("schema", n.schema)
      .Set("records", n.records)
      .Set("complete", n.complete)
      .Set("incomplete", n.records - n.complete)
      .Set("imported", n.imported)
      .Set("pinned", n.pinned)
      .Set("variants", n.variants)
      .Set("failures", n.failures)
      .Set("verifications", n.trusts)
      .Set("calibrations", n.calibrations)
      .Set("predictions", n.predictions)
      .Set("families", n.families)
      .Set("buckets", n.buckets)
      .Set("bytes", n.bytes)
      .Set("unused_bytes", n.unused_bytes)
      .Set("oldest_s", n.oldest_s)
      .Set("newest_s", n.newest_s)
      .Text();
}

/// Whether all words of the config's text that are given are in the variant's.
bool HasWords(const VariantResult& variant, absl::string_view words) {
  const std::string text = Text(variant.config);
  const std::vector<absl::string_view> has = absl::StrSplit(text, ' ');
  return absl::c_all_of(absl::StrSplit(words, ' ', absl::SkipEmpty()),
                        [&](absl::string_view word) { return absl::c_linear_search(has, word); });
}

/// The fastest variant of the record that "SCHEDULE/CONFIG" or "SCHEDULE" describes.
absl::StatusOr<VariantResult> VariantOfWords(const std::vector<VariantResult>& variants,
                                             const std::string& text) {
  const size_t slash = text.find('/');
  const std::string schedule = text.substr(0, slash);
  const std::string config = slash == std::string::npos ? "" : text.substr(slash + 1);
  bool has_schedule = false;
  // The fastest come first, those without a time last.
  for (const VariantResult& v : variants) {
    if (v.schedule != schedule && (v.trace != schedule || schedule.empty())) continue;
    has_schedule = true;
    if (HasWords(v, config)) return v;
  }
  return absl::NotFoundError(
      has_schedule
          ? absl::StrCat("no stored variant of ", schedule, " has the config ", config,
                         "; see cache show --json")
          : absl::StrCat("no stored variant has the schedule ", schedule, "; see cache show"));
}

}  // namespace

int PrintStatistics(TuningCache& cache, const CacheFlags& flags) {
  const absl::StatusOr<std::vector<LayerStatistics>> all = StatisticsOf(cache);
  if (!all.ok()) return Complain(all.status().message());
  const int64_t flips = CountFlips(cache), now = absl::ToUnixSeconds(absl::Now());
  std::vector<JsonText> layers;
  std::vector<TableCells> rows;
  for (const LayerStatistics& layer : *all) {
    const CacheStatistics& n = layer.numbers;
    layers.push_back(Json(layer));
    rows.push_back({std::string(Name(layer.of.layer)), absl::StrCat(n.records),
                    absl::StrCat(n.complete), absl::StrCat(n.imported), absl::StrCat(n.pinned),
                    absl::StrCat(n.variants), absl::StrCat(n.failures), absl::StrCat(n.buckets),
                    BytesText(n.bytes), absl::StrCat(n.schema),
                    n.records == 0 ? "" : AgeText(now - n.oldest_s),
                    n.records == 0 ? "" : AgeText(now - n.newest_s), layer.of.file});
  }
  if (flags.json) {
    std::printf("%s\n", JsonObject()
                            .Set("flips", flips)
                            .Set("limit", GetEnv().cache_limit)
                            .Set("layers", JsonList(layers))
                            .Text()
                            .text.c_str());
    return 0;
  }
  const TableColumn columns[] = {
      {"layer"},        {"records", true},  {"complete", true}, {"imported", true},
      {"pinned", true}, {"variants", true}, {"failed", true},   {"ranges", true},
      {"size", true},   {"schema", true},   {"oldest"},         {"newest"},
      {"file"}};
  std::fputs(TextTable(columns, rows).c_str(), stdout);
  if (all->size() > 1)
    std::printf("\nlayers have different winners of %d keys\n", static_cast<int>(flips));
  return 0;
}

int PruneCache(TuningCache& cache, const CacheFlags& flags) {
  PruneTerms terms{.bytes = flags.size, .dry_run = flags.dry_run};
  if (flags.older_s.has_value())
    terms.unused_since_s = absl::ToUnixSeconds(absl::Now()) - *flags.older_s;
  if (!flags.size.has_value() && !flags.older_s.has_value()) {
    if (GetEnv().cache_limit == 0)
      return Complain("prune: want --size or --older, since COCONET_CACHE_LIMIT is 0");
    terms.bytes = GetEnv().cache_limit;
  }
  std::map<std::string, std::string> programs;  // by key
  for (const KeyOfRecord& of : cache.KeyTexts()) programs[of.key] = ProgramText(of.key_text);
  const absl::StatusOr<Pruned> pruned = cache.PruneNow(terms);
  if (!pruned.ok()) return Complain(absl::StrCat("prune: ", pruned.status().message()));
  std::vector<JsonText> objects;
  for (const std::string& key : pruned->keys) {
    if (flags.json)
      objects.push_back(JsonObject().Set("key", key).Set("program", programs[key]).Text());
    else
      std::printf("%s, %s, %s\n", key.substr(0, 12).c_str(), programs[key].c_str(),
                  flags.dry_run ? "would be deleted" : "is deleted");
  }
  if (flags.json) {
    std::printf("%s\n", JsonObject()
                            .Set("dry_run", flags.dry_run)
                            .Set("bytes_before", pruned->bytes_before)
                            .Set("bytes_after", pruned->bytes_after)
                            .Set("predictions", pruned->predictions)
                            .Set("keys", JsonList(objects))
                            .Text()
                            .text.c_str());
    return 0;
  }
  std::printf("%d records and %d predictions %s, %s of %s are left\n",
              static_cast<int>(pruned->keys.size()), static_cast<int>(pruned->predictions),
              flags.dry_run ? "would be deleted" : "were deleted",
              BytesText(pruned->bytes_after).c_str(), BytesText(pruned->bytes_before).c_str());
  return 0;
}

int PinRecord(TuningCache& cache, const std::vector<LayeredRecord>& chosen,
              const CacheFlags& flags) {
  if (chosen.size() != 1) {
    return Complain(absl::StrCat(flags.command, ": want one record, have ", chosen.size(), " of ",
                                 flags.which, "; see cache list"));
  }
  const TuningRecord& record = chosen[0].record;
  const std::string name =
      absl::StrCat(record.key.substr(0, 12), ", ", ProgramText(record.key_text), ", ");
  if (flags.command == "unpin") {
    const absl::StatusOr<bool> was = cache.Unpin(record.key);
    if (!was.ok()) return Complain(absl::StrCat("unpin: ", was.status().message()));
    std::printf("%s%s\n", name.c_str(), *was ? "runs its best again" : "had nothing pinned");
    return 0;
  }
  const absl::StatusOr<VariantResult> variant =
      VariantOfWords(cache.Variants(record.key), flags.words[0]);
  if (!variant.ok()) return Complain(absl::StrCat("pin: ", variant.status().message()));
  if (const absl::Status pinned = cache.Pin(record.key, *variant); !pinned.ok())
    return Complain(absl::StrCat("pin: ", pinned.message()));
  std::printf("%sruns %s, %s, once it is verified\n", name.c_str(), Words(*variant).c_str(),
              TimeText(variant->timing.median_us).c_str());
  return 0;
}

}  // namespace coconet
