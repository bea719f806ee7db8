#include "autotune/command/sweep_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "autotune/measure/statistics.h"
#include "coconet/base/json.h"
#include "coconet/base/status.h"
#include "coconet/base/table.h"

namespace coconet {
namespace {

// Characters that a schedule and a remark keep where the table is too wide for a terminal.
constexpr size_t kNarrowSchedule = 28, kNarrowRemark = 24;

double Bandwidth(const TuningRecord& record, const VariantResult& v) {
  return v.timing.median_us > 0
             ? static_cast<double>(record.necessary_bytes) / v.timing.median_us / 1e3
             : 0;
}

double Speedup(const TuningRecord& record, const VariantResult& v) {
  return v.timing.median_us > 0 ? record.baseline.timing.median_us / v.timing.median_us : 0;
}

absl::string_view Streams(Streaming streaming) {
  switch (streaming) {
    case Streaming::kNone:
      return "";
    case Streaming::kShared:
      return "shared";
    case Streaming::kAll:
      return "all";
  }
  CC_CHECK(false);
  return "";
}

/// Why the best is the best, though another may have a smaller median.
std::string WhyBest(const TuningRecord& record, absl::Span<const VariantResult> variants) {
  for (const VariantResult& v : variants) {
    if (v.verdict == Verdict::kMeasured && v.timing.samples > 0 &&
        v.timing.median_us < record.best.timing.median_us)
      return "best: within noise of the fastest, and simpler";
  }
  return "best";
}

std::string Remark(const TuningRecord& record, const VariantResult& v,
                   absl::Span<const VariantResult> variants) {
  std::vector<std::string> words;
  if (SameVariant(v, record.best)) words.push_back(WhyBest(record, variants));
  if (SameVariant(v, record.baseline)) words.push_back("baseline");
  // The reason why a variant was dropped says that it was slower.
  if (v.verdict == Verdict::kPruned && !v.reason.empty()) {
    words.push_back(v.reason);
  } else if (v.verdict != Verdict::kMeasured) {
    const bool timed = v.verdict == Verdict::kNotMeasured && v.timing.samples > 0;
    if (timed) {
      words.push_back(absl::StrCat("measured ", v.timing.samples,
                                   v.timing.samples == 1 ? " time" : " times",
                                   v.reason.empty() ? "" : ", then ", v.reason));
    } else {
      words.push_back(absl::StrCat(Name(v.verdict), v.reason.empty() ? "" : ": ", v.reason));
    }
  }
  // The first line of a compiler's message; JSON has all of it.
  const std::string remark = absl::StrJoin(words, ", ");
  return remark.substr(0, remark.find('\n'));
}

/// "ol(MM, AR) (4 pieces, 16 beside)"
std::string WordsOf(const VariantResult& v) {
  std::vector<std::string> words;
  if (v.config.pieces > 1)
    words.push_back(
        absl::StrCat(v.config.pieces, v.config.columns ? " pieces of columns" : " pieces"));
  if (v.config.tiles > 0) {
    words.push_back(
        absl::StrCat("tiles of ", v.config.tiles,
                     v.config.tile_columns > 0 ? absl::StrCat("x", v.config.tile_columns) : "",
                     v.config.tma          ? " TMA"
                     : v.config.stages > 0 ? " wgmma"
                                           : ""));
  }
  if (v.config.beside > 0) words.push_back(absl::StrCat(v.config.beside, " beside"));
  if (v.config.batch > 0) words.push_back(absl::StrCat("batches of ", v.config.batch));
  return absl::StrCat(v.schedule,
                      words.empty() ? "" : absl::StrCat(" (", absl::StrJoin(words, ", "), ")"));
}

/// The best first, then the fastest; variants without a time last.
std::vector<const VariantResult*> InOrder(const TuningRecord& record,
                                          absl::Span<const VariantResult> variants) {
  std::vector<const VariantResult*> order;
  for (const VariantResult& v : variants) order.push_back(&v);
  const auto is_best = [&](const VariantResult* v) { return SameVariant(*v, record.best); };
  std::stable_sort(order.begin(), order.end(), [&](const VariantResult* a, const VariantResult* b) {
    if (is_best(a) != is_best(b)) return is_best(a);
    if ((a->timing.samples == 0) != (b->timing.samples == 0)) return b->timing.samples == 0;
    return a->timing.median_us < b->timing.median_us;
  });
  return order;
}

/// Median, spread, bandwidth, speedup.
TableCells TimesOf(const TuningRecord& record, const VariantResult& v) {
  const Timing& t = v.timing;
  if (t.samples == 0) return TableCells(4);
  return {TimeText(t.median_us), t.samples > 1 ? absl::StrFormat("%.1f%%", 100 * Noise(t)) : "",
          IsOnSimulatedGpus(record) ? "" : absl::StrFormat("%.1f", Bandwidth(record, v)),
          SpeedupText(record, v)};
}

TableCells CellsOf(const TuningRecord& record, const VariantResult& v,
                   absl::Span<const VariantResult> variants, absl::string_view library) {
  const Config& c = v.config;
  TableCells cells = {WordsOf(v),
                      absl::StrReplaceAll(v.protocol, {{"library", library}}),
                      absl::StrCat(c.vec, c.unroll > 1 ? absl::StrCat("x", c.unroll) : ""),
                      absl::StrCat(c.chunk),
                      absl::StrCat(c.blocks, c.threads > 1 ? absl::StrCat("x", c.threads) : ""),
                      std::string(Streams(c.streaming))};
  const TableCells times = TimesOf(record, v);
  cells.insert(cells.end(), times.begin(), times.end());
  cells.push_back(Remark(record, v, variants));
  return cells;
}

JsonText Json(const TuningRecord& record, const VariantResult& v) {
  JsonObject object;
  object.Set("schedule", v.schedule)
      .Set("trace", v.trace)
      .Set("protocol", v.protocol)
      .Set("config", Text(v.config))
      .Set("verdict", std::string(Name(v.verdict)))
      .Set("reason", v.reason)
      .Set("bytes", v.bytes);
  if (v.timing.samples > 0) {
    object.Set("median_us", v.timing.median_us)
        .Set("low_us", v.timing.low_us)
        .Set("high_us", v.timing.high_us)
        .Set("samples", v.timing.samples)
        .Set("gb_per_s", Bandwidth(record, v))
        .Set("speedup", Speedup(record, v));
  }
  return object.Text();
}

}  // namespace

std::string AgeText(int64_t seconds) {
  if (seconds < 0) return "in the future";
  if (seconds < 120) return absl::StrCat(seconds, " s ago");
  if (seconds < 2 * 3600) return absl::StrCat(seconds / 60, " min ago");
  if (seconds < 48 * 3600) return absl::StrCat(seconds / 3600, " h ago");
  return absl::StrCat(seconds / 86400, " days ago");
}

std::string SpeedupText(const TuningRecord& record, const VariantResult& variant) {
  if (IsOnSimulatedGpus(record)) return "";
  const bool is_best = SameVariant(variant, record.best) && !SameVariant(variant, record.baseline);
  const SpeedUp known = SpeedUpOf(record);
  if (!is_best || known.rounds == 0) return absl::StrFormat("%.2fx", Speedup(record, variant));
  return known.IsKnown() ? absl::StrFormat("%.2fx", known.ratio)
                         : absl::StrFormat("%.3g..%.3gx", known.low, known.high);
}

std::string BestText(const TuningRecord& record) {
  if (IsOnSimulatedGpus(record))
    return absl::StrCat(record.best.schedule, "; times of simulated GPUs say nothing of real ones");
  const std::string time = TimeText(record.best.timing.median_us);
  if (SameVariant(record.best, record.baseline)) return absl::StrCat(time, "; it is the baseline");
  return absl::StrCat(time, ", ", Text(SpeedUpOf(record)), " as fast as the baseline (",
                      TimeText(record.baseline.timing.median_us), ")");
}

std::string VariantTable(const TuningRecord& record, absl::Span<const VariantResult> variants,
                         absl::string_view library, size_t widest) {
  std::vector<TableCells> rows;
  for (const VariantResult* v : InOrder(record, variants))
    rows.push_back(CellsOf(record, *v, variants, library));
  const TableColumn columns[] = {{"schedule", false, kNarrowSchedule},
                                 {"protocol"},
                                 {"vec", true},
                                 {"chunk", true},
                                 {"blk", true},
                                 {"stream"},
                                 {"median", true},
                                 {"+-", true},
                                 {"GB/s", true},
                                 {"speedup", true},
                                 {"", false, kNarrowRemark}};
  return TextTable(columns, rows, widest);
}

std::string ScheduleTable(const TuningRecord& record, absl::Span<const VariantResult> variants,
                          absl::string_view library, size_t widest) {
  struct Count {
    int timed = 0, all = 0;
  };
  std::map<std::string, Count> counts;  // by schedule
  for (const VariantResult& v : variants) {
    Count& count = counts[v.schedule];
    ++count.all;
    count.timed += v.timing.samples > 0;
  }
  std::set<std::string> shown;
  std::vector<TableCells> rows;
  for (const VariantResult* v : InOrder(record, variants)) {
    const bool is_new = shown.insert(v->schedule).second;
    if (!is_new && !SameVariant(*v, record.best) && !SameVariant(*v, record.baseline)) continue;
    const Count& count = counts[v->schedule];
    TableCells& row =
        rows.emplace_back(TableCells{v->schedule, absl::StrCat(count.timed, " of ", count.all),
                                     absl::StrReplaceAll(v->protocol, {{"library", library}})});
    const TableCells times = TimesOf(record, *v);
    row.insert(row.end(), times.begin(), times.end());
    row.push_back(Remark(record, *v, variants));
  }
  const TableColumn columns[] = {{"schedule", false, kNarrowSchedule},
                                 {"timed", true},
                                 {"protocol"},
                                 {"median", true},
                                 {"+-", true},
                                 {"GB/s", true},
                                 {"speedup", true},
                                 {"", false, kNarrowRemark}};
  return TextTable(columns, rows, widest);
}

std::string VariantJson(const TuningRecord& record, absl::Span<const VariantResult> variants,
                        absl::string_view program, int ranks, bool from_cache,
                        const PhaseSeconds& seconds) {
  JsonObject by_phase;
  for (size_t phase = 0; phase < kPhases; ++phase) {
    if (seconds[phase] > 0)
      by_phase.Set(std::string(Name(static_cast<Phase>(phase))), seconds[phase]);
  }
  std::vector<JsonText> objects;
  for (const VariantResult& v : variants) objects.push_back(Json(record, v));
  const SpeedUp known = SpeedUpOf(record);
  JsonObject out;
  out.Set("program", std::string(program))
      .Set("ranks", ranks)
      .Set("from_cache", from_cache)
      .Set("complete", record.complete)
      .Set("search", SearchText(record))
      .Set("tried", record.search.tried)
      .Set("drawn", record.search.drawn)
      .Set("left_out", record.search.left_out)
      .Set("runs", record.search.runs)
      .Set("spent_s", record.search.spent_s)
      .Set("seconds", by_phase.Text())
      .Set("load", record.search.load)
      .Set("key", record.key)
      .Set("created_s", record.created_s)
      .Set("necessary_bytes", record.necessary_bytes)
      .Set("speed_up", known.ratio)
      .Set("speed_up_low", known.low)
      .Set("speed_up_high", known.high)
      .Set("speed_up_rounds", known.rounds)
      .Set("speed_up_known", known.IsKnown())
      .Set("best", Json(record, record.best))
      .Set("baseline", Json(record, record.baseline))
      .Set("runner_up", record.runner_up)
      .Set("verified", record.trust.empty() ? "" : record.trust[0].checks)
      .Set("variants", JsonList(objects));
  return out.Text().text + "\n";
}

}  // namespace coconet
