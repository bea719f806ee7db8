// Measures one GPU with ranks that share it: rows for docs and bars. Needs a driver, this program
// and its libraries only.

#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/gpu/ceilings.h"
#include "bench/gpu/gpu_cases.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"
#include "runtime/world.h"

ABSL_FLAG(std::string, torch, "",
          "file with lines 'RANKS MICROSECONDS' of PyTorch doing the same "
          "(bench/gpu_check/torch_adam.py)");
ABSL_FLAG(bool, host, false, "run on the host's cores: does the program itself work?");

namespace coconet::bench {
namespace {

constexpr int kRanks[] = {2, 4, 8};
constexpr int64_t kElements = int64_t{1} << 28, kQuickElements = int64_t{1} << 16;
constexpr int64_t kSmallBytes[] = {8 << 10, 64 << 10, 256 << 10};
constexpr int64_t kCopied = int64_t{4} << 30, kQuickCopied = int64_t{1} << 20;

std::vector<Column> Columns() {
  return ColumnsOf(
      "case, ranks, n|count, dtype, ours|time, variant|result|ours_variant, of copy|ratio, "
      "over AR; C|ratio|over_ar_c, over RS; C; AG|ratio|over_rs_c_ag, over sequential|ratio, "
      "bound|ratio, product's speed|ratio|of_product, over PyTorch|ratio|over_torch, "
      "dispatch|time, replay|time, bar, met");
}

/// A row: its bars, and what measures it on a rank.
struct Case {
  std::string name;
  int ranks = 0;
  std::string bars;  // as BarsOf reads them
  std::function<absl::StatusOr<Row>(Rank&)> measure;
  double torch_us = 0;  // of PyTorch doing the same; 0: it was not measured
};

Case AllReduceOf(int64_t bytes) {
  const GpuTerms terms = {.budget_s = TuningBudget(8, 2), .seconds = IsQuick() ? 0.2 : 1};
  return {"all_reduce", absl::GetFlag(FLAGS_host) ? 2 : 8,
          "ours_us <= 8, dispatch_us <= 5, replay_us <= 1.5",
          [=](Rank& rank) { return MeasureGpuAllReduce(rank, bytes, terms); }};
}

Case Overlap() {
  const ProductCase product = IsQuick()
                                  ? ProductCase{.rows = 256, .inner = 64, .columns = 256}
                                  : ProductCase{.rows = 4096, .inner = 1536, .columns = 12288};
  const GpuTerms terms = {.budget_s = TuningBudget(12, 2), .seconds = IsQuick() ? 0.2 : 2};
  return {"mlp", 2, "over_sequential >= 1.1, of_product >= 0.9",
          [=](Rank& rank) { return MeasureGpuOverlap(rank, product, terms); }};
}

Case AdamOn(int ranks, double torch_us) {
  const int64_t n = IsQuick() ? kQuickElements : kElements;
  const int64_t copied_bytes = IsQuick() ? kQuickCopied : kCopied;
  const GpuTerms terms = {.budget_s = TuningBudget(12, 2), .seconds = 3};
  std::string bars = "of_copy >= 0.85, over_rs_c_ag >= 1.15";
  if (ranks == 2) bars += ", over_ar_c >= 1.6";
  if (ranks == 8) bars += ", over_ar_c >= 3";
  if (ranks == 2 && torch_us > 0) bars += ", over_torch >= 1.4";
  if (ranks == 8 && torch_us > 0) bars += ", over_torch >= 1.25";
  return {"adam", ranks, bars,
          [=](Rank& rank) { return MeasureGpuAdam(rank, n, copied_bytes, terms); }, torch_us};
}

std::vector<Case> Cases() {
  std::map<int, double> torch_us;  // by number of ranks
  std::ifstream file(Resolve(absl::GetFlag(FLAGS_torch)));
  int of_ranks = 0;
  for (double us = 0; file >> of_ranks >> us;) torch_us[of_ranks] = us;
  std::vector<Case> cases;
  for (int64_t bytes : kSmallBytes) {
    cases.push_back(AllReduceOf(bytes));
    if (IsQuick()) break;
  }
  cases.push_back(Overlap());
  for (int ranks : kRanks) {
    cases.push_back(AdamOn(ranks, torch_us[ranks]));
    if (absl::GetFlag(FLAGS_host)) break;
  }
  return cases;
}

/// Rank 0's row. There are no bars for small sizes and on the host.
absl::StatusOr<Row> Measure(const Case& c) {
  const bool host = absl::GetFlag(FLAGS_host);
  Row row;
  RETURN_IF_ERROR(RunWorld({.ranks = c.ranks, .backend = host ? Backend::kHost : Backend::kCuda},
                           [&](Rank& rank) -> absl::Status {
                             ASSIGN_OR_RETURN(Row mine, c.measure(rank));
                             if (rank.rank() == 0) row = std::move(mine);
                             return absl::OkStatus();
                           }));
  if (c.torch_us > 0)
    row.Set("torch_us", c.torch_us).Set("over_torch", c.torch_us / row.Number("ours_us"));
  return row.SetBars(BarsOf(IsQuick() || host ? "" : c.bars));
}

/// A measurement that fails becomes a row with "error". Unavailable if there is no device.
absl::Status RunAll() {
  std::vector<Row> rows;
  for (const Case& c : Cases()) {
    absl::StatusOr<Row> row = Measure(c);
    if (absl::IsUnavailable(row.status())) return row.status();
    if (!row.ok()) {
      const std::string error(row.status().message());
      row = Row().Set("case", c.name).Set("ranks", int64_t{c.ranks}).Set("error", error);
    }
    row->Set("date", absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()));
    if (!absl::GetFlag(FLAGS_host)) AddGpu(*row);
    rows.push_back(*std::move(row));
    std::fprintf(stderr, "gpu: %s on %d ranks: done\n", c.name.c_str(), c.ranks);
    RETURN_IF_ERROR(Save(rows, Columns()));  // what follows may be cut off
  }
  return Show(rows, Columns());
}

const Registered kBenchmark({.name = "gpu",
                             .purpose = "measures what a GPU does with ranks that share it",
                             .heeds = {"quick", "budget"},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
