// Prints how long NVRTC takes for the kernel of a whole step, and how compiles scale with threads.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "autotune/measure/statistics.h"
#include "bench/harness/machine.h"
#include "bench/harness/row.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/schedule.h"
#include "coconet/workloads/workloads.h"
#include "jit/compile/compiler.h"
#include "jit/compile/temp_dir.h"
#include "jit/lower/lower.h"

ABSL_FLAG(int, rounds, 9, "compiles of each kernel");
ABSL_FLAG(int, kernels, 16, "variants that are compiled in parallel");

namespace coconet::bench {
namespace {

constexpr int kRanks = 8;
constexpr DType kDType = DType::kF16;
constexpr Config kConfig = {
    .protocol = Protocol::kGenerated, .vec = 8, .blocks = 132, .threads = 512};

absl::StatusOr<std::vector<Lowered>> LoweredOf(const WorkloadInfo& workload) {
  ASSIGN_OR_RETURN(const Graph symbolic, MakeWorkload(workload.name, {.dtype = kDType}));
  ASSIGN_OR_RETURN(const Graph program, BindSizes(symbolic, workload.presets[0].sizes));
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program, {}));
  std::vector<Lowered> all;
  for (const Schedule& schedule : schedules) {
    if (!Validate(kConfig, schedule, {.ranks = kRanks}).ok()) continue;
    ASSIGN_OR_RETURN(all.emplace_back(), Lower(schedule, kConfig, kRanks));
  }
  return all;
}

using Clock = std::chrono::steady_clock;

/// Compiles all `sources` by `threads` threads into a new cache; returns microseconds.
absl::StatusOr<double> CompileAll(absl::string_view arch, const std::vector<std::string>& sources,
                                  int threads) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> cache, TempDir::Make());
  ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                   MakeNvrtcCompiler(arch, {.cache_dir = cache->path()}));
  std::vector<absl::Status> compiled(sources.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < sources.size(); i = next++)
      compiled[i] = compiler->Compile(sources[i]).status();
  };
  const Clock::time_point begin = Clock::now();
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  for (const absl::Status& status : compiled) RETURN_IF_ERROR(status);
  return us;
}

void SetCompilation(Row& row, absl::string_view name, absl::string_view arch) {
  row.Set("case", std::string(name))
      .Set("dtype", std::string(Name(kDType)))
      .Set("arch", std::string(arch))
      .Set("ranks", int64_t{kRanks});
}

absl::Status SetNvrtc(Row& row, absl::string_view arch) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> cache, TempDir::Make());
  ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                   MakeNvrtcCompiler(arch, {.cache_dir = cache->path()}));
  const std::string& identity = compiler->identity();
  row.Set("nvrtc", identity.substr(0, identity.find(';')));
  return absl::OkStatus();
}

void SetTimes(Row& row, const Timing& timing) {
  row.Set("ours_us", timing.median_us)
      .Set("ours_low_us", timing.low_us)
      .Set("ours_high_us", timing.high_us)
      .Set("spread", Noise(timing));
}

/// Times how long NVRTC takes, on one thread, for the kernel of a whole step: the longest source
/// among the workload's schedules that are one kernel (mixed precision, the first preset's sizes, 8
/// ranks). Each of `rounds` compiles is a miss in a new binary cache, after an untimed one, and
/// includes the write to the cache. Fields: "case", "dtype", "arch", "ranks", "characters" (of the
/// source), "nvrtc", "ours_us", "ours_low_us", "ours_high_us", "spread", "rounds". NotFound where
/// no schedule is one kernel; Unavailable without NVRTC.
absl::StatusOr<Row> MeasureCompilation(const WorkloadInfo& workload, absl::string_view arch,
                                       int rounds) {
  ASSIGN_OR_RETURN(const std::vector<Lowered> all, LoweredOf(workload));
  std::string longest;
  for (const Lowered& lowered : all) {
    const bool one_kernel =
        lowered.plan.steps.size() == 1 && std::holds_alternative<KernelStep>(lowered.plan.steps[0]);
    if (one_kernel && lowered.kernels.text().size() > longest.size())
      longest = lowered.kernels.text();
  }
  if (longest.empty())
    return absl::NotFoundError(absl::StrCat(workload.name, ": no schedule is one kernel"));
  std::vector<double> times;
  for (int round = 0; round <= rounds; ++round) {
    ASSIGN_OR_RETURN(const double us, CompileAll(arch, {longest}, 1));
    if (round > 0) times.push_back(us);
  }
  Row row;
  SetCompilation(row, workload.name, arch);
  row.Set("characters", static_cast<int64_t>(longest.size()));
  RETURN_IF_ERROR(SetNvrtc(row, arch));
  SetTimes(row, Summarize(times));
  row.Set("rounds", static_cast<int64_t>(rounds));
  return row;
}

/// Compiles `kernels` different kernels of Adam's schedules by `threads` threads, and by one in the
/// same rounds. Fields: as above, with "threads", "kernels", "baseline_us" (one thread), "ratio"
/// (the speedup) and "of_limit" (the speedup per thread).
absl::StatusOr<Row> MeasureParallelCompilation(absl::string_view arch, int kernels, int threads,
                                               int rounds) {
  std::vector<std::string> sources;
  for (const WorkloadInfo& workload : Workloads()) {
    if (!workload.optimizer || static_cast<int>(sources.size()) >= kernels) continue;
    ASSIGN_OR_RETURN(const std::vector<Lowered> all, LoweredOf(workload));
    for (const Lowered& lowered : all) {
      const bool is_new =
          !lowered.kernels.empty() &&
          std::find(sources.begin(), sources.end(), lowered.kernels.text()) == sources.end();
      if (is_new && static_cast<int>(sources.size()) < kernels)
        sources.push_back(lowered.kernels.text());
    }
  }
  std::vector<double> ours, baseline;
  for (int round = 0; round <= rounds; ++round) {
    ASSIGN_OR_RETURN(const double one, CompileAll(arch, sources, 1));
    ASSIGN_OR_RETURN(const double many, CompileAll(arch, sources, threads));
    if (round == 0) continue;
    baseline.push_back(one);
    ours.push_back(many);
  }
  const Timing timing = Summarize(ours), alone = Summarize(baseline);
  Row row;
  SetCompilation(row, absl::StrCat(sources.size(), " variants"), arch);
  RETURN_IF_ERROR(SetNvrtc(row, arch));
  SetTimes(row, timing);
  row.Set("baseline_us", alone.median_us)
      .Set("threads", int64_t{threads})
      .Set("kernels", static_cast<int64_t>(sources.size()));
  row.Set("ratio", alone.median_us / timing.median_us)
      .Set("of_limit", alone.median_us / timing.median_us / threads);
  row.Set("rounds", static_cast<int64_t>(rounds));
  return row;
}

constexpr double kMostMicroseconds = 120e3;
constexpr double kLeastOfLimit = 0.8;

std::vector<Column> Columns() {
  return ColumnsOf(
      "kernel|text|case, arch, threads|%.0f, time|time|ours_us, +-|100*%.1f%%|spread, "
      "one thread|time|baseline_us, of limit|ratio, bar, met|yes");
}

void Add(Row row, const Bar& bar, std::vector<Row>& rows) {
  row.SetBars({&bar, 1});
  AddMachine(row);
  rows.push_back(std::move(row));
}

absl::Status RunAll() {
  std::vector<Row> rows;
  const int rounds = IsQuick() ? 1 : std::max(1, absl::GetFlag(FLAGS_rounds));
  for (absl::string_view arch : {"sm_80", "sm_90a", "sm_100"}) {
    for (const WorkloadInfo& workload : Workloads()) {
      if (!workload.optimizer) continue;
      absl::StatusOr<Row> row = MeasureCompilation(workload, arch, rounds);
      if (absl::IsNotFound(row.status())) continue;
      RETURN_IF_ERROR(row.status());
      Add(std::move(row->Set("threads", int64_t{1})),
          {"ours_us", Bar::Side::kAtMost, kMostMicroseconds}, rows);
    }
  }
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (int threads = 2; threads <= cores; threads *= 2) {
    ASSIGN_OR_RETURN(Row row,
                     MeasureParallelCompilation("sm_90a", std::max(1, absl::GetFlag(FLAGS_kernels)),
                                                threads, std::max(3, rounds / 2)));
    Add(std::move(row), {"of_limit", Bar::Side::kAtLeast, kLeastOfLimit}, rows);
  }
  return Show(rows, Columns());
}

const Registered kBenchmark(
    {.name = "nvrtc",
     .usage = "times compiles of kernels by NVRTC; see bench/README.md\n\n  nvrtc [--rounds=9] "
              "[--kernels=16] [--json=FILE]",
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
