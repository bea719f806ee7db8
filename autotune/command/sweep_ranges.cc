#include "autotune/command/sweep_ranges.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/command/sizes.h"
#include "autotune/measure/statistics.h"
#include "coconet/base/json.h"

namespace coconet {
namespace {

constexpr size_t kNarrowSchedule = 24;

std::string EndText(const SizeBucket::End& end) {
  return absl::StrCat(TimeText(end.us), " at ", ShortSize(end.size));
}
std::string GainText(const SizeBucket::End& end) {
  return absl::StrFormat("%.2fx", end.baseline_us / end.us);
}

JsonText EndJson(const SizeBucket::End& end) {
  JsonObject out;
  out.Set("size", end.size).Set("us", end.us).Set("baseline_us", end.baseline_us);
  return out.Text();
}

JsonText RangesJson(const SizeRanges& ranges) {
  JsonObject out;
  for (const auto& [symbol, range] : ranges) {
    JsonObject ends;
    ends.Set("from", range.lo).Set("to", range.hi);
    out.Set(symbol, ends.Text());
  }
  return out.Text();
}

}  // namespace

std::string BucketTable(absl::Span<const SizeBucket> buckets, absl::string_view main_symbol,
                        size_t widest) {
  std::vector<TableCells> rows;
  for (const SizeBucket& bucket : buckets) {
    const bool crosses = bucket.bracket > 1;
    rows.push_back({RangesText(bucket.box), bucket.schedule, EndText(bucket.first),
                    GainText(bucket.first), EndText(bucket.last), GainText(bucket.last),
                    crosses ? absl::StrFormat("%s=%s, within %.2fx", main_symbol,
                                              ShortSize(bucket.box.at(std::string(main_symbol)).lo),
                                              bucket.bracket)
                            : ""});
  }
  return TextTable({{"sizes"},
                    {"schedule", false, kNarrowSchedule},
                    {"first tuned", true},
                    {"speedup", true},
                    {"last tuned", true},
                    {"speedup", true},
                    {"crossover"}},
                   rows, widest);
}

std::string BucketJson(const TunedSizes& tuned, absl::string_view program, int ranks,
                       double seconds) {
  std::vector<JsonText> buckets, crossovers, points;
  for (const SizeBucket& bucket : tuned.buckets()) {
    JsonObject out;
    out.Set("sizes", RangesJson(bucket.box))
        .Set("schedule", bucket.schedule)
        .Set("trace", bucket.trace)
        .Set("config", Text(bucket.config))
        .Set("first", EndJson(bucket.first))
        .Set("last", EndJson(bucket.last))
        .Set("record", bucket.key)
        .Set("verified", bucket.checks);
    buckets.push_back(out.Text());
    if (bucket.bracket <= 1) continue;
    JsonObject crossover;
    crossover.Set("symbol", tuned.main_symbol())
        .Set("at", bucket.box.at(tuned.main_symbol()).lo)
        .Set("within", bucket.bracket)
        .Set("sizes", RangesJson(bucket.box));
    crossovers.push_back(crossover.Text());
  }
  for (const TunedSizes::Point& point : tuned.points()) {
    JsonObject out;
    out.Set("sizes", SizesText(point.sizes))
        .Set("schedule", point.record.best.schedule)
        .Set("config", Text(point.record.best.config))
        .Set("us", point.record.best.timing.median_us)
        .Set("baseline_us", point.record.baseline.timing.median_us)
        .Set("complete", point.record.complete)
        .Set("variants", point.record.variants);
    points.push_back(out.Text());
  }
  JsonObject out;
  out.Set("program", std::string(program))
      .Set("ranks", ranks)
      .Set("ranges", RangesJson(tuned.ranges()))
      .Set("from_cache", tuned.from_cache())
      .Set("seconds", seconds)
      .Set("buckets", JsonList(buckets))
      .Set("crossovers", JsonList(crossovers))
      .Set("points", JsonList(points));
  return out.Text().text + "\n";
}

}  // namespace coconet
