// Prints how far predicted times of kernels are from measured ones.

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/calibrate/calibrate.h"
#include "autotune/calibrate/timed_program.h"
#include "autotune/cost/measured_cost_model.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/predictions/fusions.h"
#include "coconet/base/status.h"
#include "coconet/language/language.h"
#include "coconet/language/text.h"
#include "jit/compile/temp_dir.h"
#include "runtime/world.h"

ABSL_FLAG(int, ranks, 1, "threads of this process");
ABSL_FLAG(int, fusions, 500, "that are judged");
ABSL_FLAG(uint64_t, seed, 1, "of the fusions");
ABSL_FLAG(std::string, all, "", "file for all predictions, beside the worst ones");
ABSL_FLAG(std::string, cache, "", "folder that keeps compiled kernels for the next run");

namespace coconet::bench {
namespace {

constexpr double kNear = 0.15;  // an error that counts as near
constexpr int kWorst = 10;      // rows of the table

/// Fusions that are one kernel and move at least as many bytes as 1 Ki elements have.
absl::StatusOr<std::vector<Fusion>> DrawAll(const Config& config, const Target& target) {
  std::mt19937_64 random(absl::GetFlag(FLAGS_seed));
  ASSIGN_OR_RETURN(const StepFusions steps, StepFusions::Make());
  std::vector<Fusion> fusions;
  std::set<std::string> seen;
  const size_t wanted = IsQuick() ? 10 : static_cast<size_t>(absl::GetFlag(FLAGS_fusions));
  for (size_t draw = 0; fusions.size() < wanted && draw < 100 * wanted; ++draw) {
    const bool half = fusions.size() % 2 == 0;
    absl::StatusOr<Fusion> fusion = half ? DrawFusion(random) : steps.Draw(random);
    RETURN_IF_ERROR(fusion.status());
    if (!seen.insert(Print(Canonicalize(fusion->program).graph)).second) continue;
    const absl::StatusOr<TimedProgram> launch = MakeTimedProgram(fusion->program, config, target);
    if (!launch.ok()) continue;  // not all that is drawn fits a kernel
    constexpr double kLeastBytes = 4096;
    const Work& work = launch->work;
    if (work.kind != Work::Kind::kKernel || work.bytes_read + work.bytes_written < kLeastBytes)
      continue;
    fusions.push_back(*std::move(fusion));
  }
  return fusions;
}

/// Collectives of sizes that no calibration measures.
absl::StatusOr<std::vector<Fusion>> Collectives() {
  std::vector<Fusion> all;
  for (int64_t elements : {1000, 10000, 30000, 100000, 150000, 400000, 700000, 1500000}) {
    for (int kind = 0; kind < 3; ++kind) {
      Program p(kind == 0 ? "all_reduce" : kind == 1 ? "reduce_scatter" : "all_gather");
      const Tensor x =
          p.Input("x", DType::kF32, {elements}, kind == 2 ? Layout::Sliced(0) : Layout::Local());
      p.Output("y", kind == 0   ? AllReduce(ReduceKind::kSum, x)
                    : kind == 1 ? ReduceScatter(ReduceKind::kSum, x)
                                : AllGather(x));
      ASSIGN_OR_RETURN(Graph program, p.graph());
      all.push_back({"collective", std::move(program)});
    }
  }
  return all;
}

Row RowOf(const Fusion& fusion, const MeasuredWork& measured, const CostModel& model) {
  const Work& work = measured.work;
  const double predicted = model.Us(work);
  Row row;
  row.Set("case", fusion.source).Set("predicted_us", predicted).Set("measured_us", measured.us);
  row.Set("error", predicted / measured.us - 1);
  if (work.kind == Work::Kind::kCollective) {
    row.Set("bytes", work.bytes).Set("program", fusion.program.name);
    return row;
  }
  row.Set("bytes_read", work.bytes_read).Set("bytes_written", work.bytes_written);
  row.Set("bytes_again", work.bytes_again);
  for (size_t e = 0; e < kEfforts; ++e) {
    if (work.efforts[e] > 0) row.Set(Name(static_cast<Effort>(e)), work.efforts[e]);
  }
  return row.Set("program", Print(fusion.program));
}

/// How near the predictions of one case, "": of all kernels, are.
Row SummaryOf(absl::Span<const Row> rows, const std::string& source) {
  std::vector<double> errors;
  for (const Row& row : rows) {
    const bool counts =
        source.empty() ? TextOf(row, "case") != "collective" : TextOf(row, "case") == source;
    if (counts) errors.push_back(std::fabs(row.Number("error")));
  }
  std::sort(errors.begin(), errors.end());
  Row row;
  row.Set("case", source.empty() ? std::string("kernels") : source + " all");
  row.Set("count", static_cast<int64_t>(errors.size()));
  if (errors.empty()) return row;
  const auto near = std::upper_bound(errors.begin(), errors.end(), kNear) - errors.begin();
  const auto count = static_cast<double>(errors.size());
  row.Set("within_15_percent", static_cast<double>(near) / count);
  row.Set("median_error", errors[errors.size() / 2]);
  row.Set("error_of_90_percent", errors[static_cast<size_t>(0.9 * (count - 1))]);
  if (source.empty() && !IsQuick()) row.SetBars({{"within_15_percent", Bar::Side::kAtLeast, 0.9}});
  return row;
}

absl::StatusOr<std::vector<Row>> JudgeAll(Rank& rank, const std::string& cache) {
  ASSIGN_OR_RETURN(const Config config, PlainConfig(rank));
  ASSIGN_OR_RETURN(std::vector<Fusion> fusions, DrawAll(config, rank.stage_size()));
  if (rank.stage_size() > 1) {
    ASSIGN_OR_RETURN(const std::vector<Fusion> collectives, Collectives());
    fusions.insert(fusions.end(), collectives.begin(), collectives.end());
  }
  Binaries::Options options;
  options.target = BinaryTarget("", 0);
  options.cache_dir = cache;
  options.compiler = [&]() -> absl::StatusOr<std::shared_ptr<Compiler>> {
    return MakeCompilerFor(/*arch=*/"", /*simulated=*/false, {.cache_dir = cache});
  };
  options.warn = [](absl::string_view) {};
  ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> binaries,
                   Binaries::Open(rank, std::move(options)));
  const absl::Time begin = absl::Now();
  ASSIGN_OR_RETURN(const Rates rates, Calibrate(rank, *binaries));
  const double calibrate_s = absl::ToDoubleSeconds(absl::Now() - begin);
  const MeasuredCostModel model(rates);
  std::vector<Graph> programs;
  for (const Fusion& fusion : fusions) programs.push_back(fusion.program);
  ASSIGN_OR_RETURN(const std::vector<MeasuredWork> measured,
                   MeasureLaunches(rank, *binaries, programs));
  if (measured.size() != fusions.size()) return absl::InternalError("a program is not one launch");
  std::vector<Row> rows;
  for (size_t i = 0; i < fusions.size(); ++i) rows.push_back(RowOf(fusions[i], measured[i], model));
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::fabs(std::log1p(a.Number("error"))) > std::fabs(std::log1p(b.Number("error")));
  });
  std::vector<Row> all;
  for (const char* source : {"", "drawn", "gpt_step", "collective"}) {
    Row summary = SummaryOf(rows, source);
    if (summary.Number("count") == 0) continue;
    summary.Set("ranks", int64_t{rank.size()}).Set("calibrate_s", calibrate_s);
    AddMachine(summary.Set("load_before", LoadAverage()));
    if (*source == 0) summary.Set("rates", JsonText{Json(rates)});
    all.push_back(std::move(summary));
  }
  all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

absl::Status RunAll() {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  const std::string cache =
      absl::GetFlag(FLAGS_cache).empty() ? folder->path() : Resolve(absl::GetFlag(FLAGS_cache));
  std::vector<Row> rows;
  RETURN_IF_ERROR(RunWorld({.ranks = absl::GetFlag(FLAGS_ranks)}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(std::vector<Row> mine, JudgeAll(rank, cache));
    if (rank.rank() == 0) rows = std::move(mine);
    return absl::OkStatus();
  }));
  static constexpr auto kPercent = [](const Row& r, absl::string_view field) {
    return std::holds_alternative<double>(r.Get(field))
               ? absl::StrFormat("%.1f%%", 100 * r.Number(field))
               : std::string();
  };
  const std::vector<Column> columns = ColumnsOf(
      "case, count|%.0f, within 15 %|*, median error|*, 90 % within|*, predicted|time, "
      "measured|time, error|*, bar, met",
      {{"within 15 %", [](const Row& r) { return kPercent(r, "within_15_percent"); }},
       {"median error", [](const Row& r) { return kPercent(r, "median_error"); }},
       {"90 % within", [](const Row& r) { return kPercent(r, "error_of_90_percent"); }},
       {"error", [](const Row& r) { return kPercent(r, "error"); }}});
  // The table has the summaries and the worst predictions; the file all of them.
  if (const std::string& file = absl::GetFlag(FLAGS_all); !file.empty())
    RETURN_IF_ERROR(WriteFile(Resolve(file), Json(absl::Span<const Row>(rows))));
  rows.resize(std::min(rows.size(), size_t{4} + kWorst));
  return Show(rows, columns);
}

const Registered kBenchmark(
    {.name = "predictions",
     .usage =
         "compares predicted with measured times of kernels; see bench/README.md\n\n  "
         "predictions [--ranks=1] [--fusions=500] [--seed=1] [--cache=DIR] [--all=FILE] [--quick] "
         "[--json=FILE] [--markdown=FILE]",
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
