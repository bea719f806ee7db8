// Measures one GPU with ranks that share it: rows for docs and bars. Needs a driver, this program
// and its libraries only.

#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/gpu/gpu_adam.h"
#include "bench/gpu/gpu_allreduce.h"
#include "bench/gpu/gpu_copy.h"
#include "bench/gpu/gpu_overlap.h"
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

std::vector<Bar> BarsOf(int ranks) {
  std::vector<Bar> bars = {{"of_copy", Bar::Side::kAtLeast, 0.85},
                           {"over_rs_c_ag", Bar::Side::kAtLeast, 1.15}};
  if (ranks == 2) bars.push_back({"over_ar_c", Bar::Side::kAtLeast, 1.6});
  if (ranks == 8) bars.push_back({"over_ar_c", Bar::Side::kAtLeast, 3});
  return bars;
}

/// PyTorch's times by number of ranks.
std::map<int, double> TorchTimes() {
  std::map<int, double> times;
  std::ifstream file(Resolve(absl::GetFlag(FLAGS_torch)));
  int ranks = 0;
  for (double us = 0; file >> ranks >> us;) times[ranks] = us;
  return times;
}

Backend ChosenBackend() { return absl::GetFlag(FLAGS_host) ? Backend::kHost : Backend::kCuda; }

/// Sets bars, except for small sizes and on the host.
void SetBars(Row& row, const std::vector<Bar>& bars) {
  row.SetBars(IsQuick() || absl::GetFlag(FLAGS_host) ? std::vector<Bar>() : bars);
}

/// Runs `measure` on `ranks` ranks; returns rank 0's row.
absl::StatusOr<Row> OnRanks(int ranks, const std::function<absl::StatusOr<Row>(Rank&)>& measure) {
  Row row;
  RETURN_IF_ERROR(
      RunWorld({.ranks = ranks, .backend = ChosenBackend()}, [&](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(Row mine, measure(rank));
        if (rank.rank() == 0) row = std::move(mine);
        return absl::OkStatus();
      }));
  return row;
}

absl::StatusOr<Row> Adam(int ranks, const std::map<int, double>& torch) {
  GpuAdamCase c{.n = IsQuick() ? kQuickElements : kElements,
                .budget_s = TuningBudget(12, 2),
                .copied_bytes = IsQuick() ? kQuickCopied : kCopied,
                .copy = nullptr};
  ASSIGN_OR_RETURN(c.copy, absl::GetFlag(FLAGS_host) ? CopiesOnHost() : CopiesOnGpu());
  ASSIGN_OR_RETURN(Row row, OnRanks(ranks, [&](Rank& rank) { return MeasureGpuAdam(rank, c); }));
  std::vector<Bar> bars = BarsOf(ranks);
  if (const auto theirs = torch.find(ranks); theirs != torch.end()) {
    row.Set("torch_us", theirs->second).Set("over_torch", theirs->second / row.Number("ours_us"));
    if (ranks == 2) bars.push_back({"over_torch", Bar::Side::kAtLeast, 1.4});
    if (ranks == 8) bars.push_back({"over_torch", Bar::Side::kAtLeast, 1.25});
  }
  SetBars(row, bars);
  return row;
}

absl::StatusOr<Row> SmallAllReduce(int ranks, int64_t bytes) {
  const GpuAllReduceCase c{
      .bytes = bytes, .budget_s = TuningBudget(8, 2), .seconds = IsQuick() ? 0.2 : 1};
  ASSIGN_OR_RETURN(Row row,
                   OnRanks(ranks, [&](Rank& rank) { return MeasureGpuAllReduce(rank, c); }));
  SetBars(row, {{"ours_us", Bar::Side::kAtMost, 8},
                {"dispatch_us", Bar::Side::kAtMost, 5},
                {"replay_us", Bar::Side::kAtMost, 1.5}});
  return row;
}

absl::StatusOr<Row> Overlap(int ranks) {
  GpuOverlapCase c{.rows = 4096,
                   .inner = 1536,
                   .columns = 12288,
                   .budget_s = TuningBudget(12, 2),
                   .seconds = IsQuick() ? 0.2 : 2};
  if (IsQuick()) c.rows = c.columns = 256, c.inner = 64;
  ASSIGN_OR_RETURN(Row row, OnRanks(ranks, [&](Rank& rank) { return MeasureGpuOverlap(rank, c); }));
  SetBars(row, {{"over_sequential", Bar::Side::kAtLeast, 1.1},
                {"of_product", Bar::Side::kAtLeast, 0.9}});
  return row;
}

/// The rows so far. A measurement that fails becomes a row with "error". Unavailable where there is
/// no device to measure.
class Rows {
 public:
  absl::Status Add(absl::string_view name, int ranks, absl::StatusOr<Row> row) {
    if (absl::IsUnavailable(row.status())) return row.status();
    if (!row.ok()) {
      const std::string error(row.status().message());
      row = Row().Set("case", std::string(name)).Set("ranks", int64_t{ranks}).Set("error", error);
    }
    row->Set("date", absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone()));
    if (!absl::GetFlag(FLAGS_host)) AddGpu(*row);
    rows_.push_back(*std::move(row));
    std::fprintf(stderr, "gpu: %s on %d ranks: done\n", std::string(name).c_str(), ranks);
    return Save(rows_, Columns());  // what follows may be cut off
  }
  const std::vector<Row>& all() const { return rows_; }

 private:
  std::vector<Row> rows_;
};

absl::Status RunAll() {
  const std::map<int, double> torch = TorchTimes();
  const bool host = absl::GetFlag(FLAGS_host);
  Rows rows;
  for (int64_t bytes : kSmallBytes) {
    const int ranks = host ? 2 : 8;
    RETURN_IF_ERROR(rows.Add("all_reduce", ranks, SmallAllReduce(ranks, bytes)));
    if (IsQuick()) break;
  }
  RETURN_IF_ERROR(rows.Add("mlp", 2, Overlap(2)));
  for (int ranks : kRanks) {
    RETURN_IF_ERROR(rows.Add("adam", ranks, Adam(ranks, torch)));
    if (host) break;
  }
  return Show(rows.all(), Columns());
}

const Registered kBenchmark(
    {.name = "gpu",
     .usage = "measures what a GPU does with ranks that share it; see bench/README.md\n\n  gpu "
              "[--quick] [--json=FILE] [--markdown=FILE]",
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
