// Prints how long NVRTC takes for the kernel of a whole step, and how compiles scale with threads.

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "autotune/measure/statistics.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/user.h"
#include "bench/harness/workload.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
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
  ASSIGN_OR_RETURN(const Graph program,
                   BoundWorkload(workload.name, kDType, workload.presets[0].sizes));
  ASSIGN_OR_RETURN(const std::vector<Schedule> schedules, Derive(program, {}));
  std::vector<Lowered> all;
  for (const Schedule& schedule : schedules) {
    if (!Validate(kConfig, schedule, {.ranks = kRanks}).ok()) continue;
    ASSIGN_OR_RETURN(all.emplace_back(), Lower(schedule, kConfig, kRanks));
  }
  return all;
}

/// The kernel of a whole step: the longest source among the workload's schedules that are one
/// kernel; "" if none is.
absl::StatusOr<std::string> KernelOfStep(const WorkloadInfo& workload) {
  ASSIGN_OR_RETURN(const std::vector<Lowered> all, LoweredOf(workload));
  std::string longest;
  for (const Lowered& lowered : all) {
    const bool one_kernel =
        lowered.plan.steps.size() == 1 && std::holds_alternative<KernelStep>(lowered.plan.steps[0]);
    if (one_kernel && lowered.kernels.text().size() > longest.size())
      longest = lowered.kernels.text();
  }
  return longest;
}

/// So many different kernels of optimizers' schedules, if there are as many.
absl::StatusOr<std::vector<std::string>> DifferentKernels(size_t kernels) {
  std::vector<std::string> sources;
  for (const WorkloadInfo& workload : Workloads()) {
    if (!workload.optimizer || sources.size() >= kernels) continue;
    ASSIGN_OR_RETURN(const std::vector<Lowered> all, LoweredOf(workload));
    for (const Lowered& lowered : all) {
      const bool is_new =
          !lowered.kernels.empty() && !absl::c_linear_search(sources, lowered.kernels.text());
      if (is_new && sources.size() < kernels) sources.push_back(lowered.kernels.text());
    }
  }
  return sources;
}

/// Compiles all `sources` by `threads` threads into a new cache; returns microseconds, and sets
/// "nvrtc".
absl::StatusOr<double> CompileAll(absl::string_view arch, const std::vector<std::string>& sources,
                                  int threads, Row& row) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> cache, TempDir::Make());
  ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                   MakeNvrtcCompiler(arch, {.cache_dir = cache->path()}));
  std::vector<absl::Status> compiled(sources.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < sources.size(); i = next++)
      compiled[i] = compiler->Compile(sources[i]).status();
  };
  const double begin_s = SecondsNow();
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  const double us = 1e6 * (SecondsNow() - begin_s);
  for (const absl::Status& status : compiled) RETURN_IF_ERROR(status);
  row.Set("nvrtc", compiler->identity().substr(0, compiler->identity().find(';')));
  return us;
}

/// Times how long NVRTC takes for `sources` (mixed precision, the first preset's sizes, 8 ranks) by
/// `threads` threads. Each of `rounds` compiles is a miss in a new binary cache, after an untimed
/// one, and includes the write to the cache. Fields: "case", "dtype", "arch", "ranks", "nvrtc",
/// "ours_us", "ours_low_us", "ours_high_us", "spread", "threads", "rounds". One thread:
/// "characters" (of the source). Several: "kernels", and, by one thread in the same rounds,
/// "baseline_us", "ratio" (the speedup) and "of_limit" (the speedup per thread). Unavailable
/// without NVRTC.
absl::StatusOr<Row> Measure(const std::string& name, absl::string_view arch,
                            const std::vector<std::string>& sources, int threads, int rounds) {
  Row row;
  row.Set("case", name)
      .Set("dtype", std::string(Name(kDType)))
      .Set("arch", std::string(arch))
      .Set("ranks", kRanks);
  std::vector<double> ours, alone;
  for (int round = 0; round <= rounds; ++round) {
    ASSIGN_OR_RETURN(const double one, CompileAll(arch, sources, 1, row));
    double many = one;
    if (threads > 1) {
      ASSIGN_OR_RETURN(many, CompileAll(arch, sources, threads, row));
    }
    if (round == 0) continue;
    alone.push_back(one);
    ours.push_back(many);
  }
  const Timing timing = Summarize(ours);
  SetTime(row, "ours", timing);
  row.Set("spread", Noise(timing)).Set("threads", threads).Set("rounds", rounds);
  if (threads == 1) {
    row.Set("characters", static_cast<int64_t>(sources[0].size()));
    row.SetBars(BarsOf("ours_us <= 120000"));
  } else {
    const double alone_us = Median(alone), ratio = alone_us / timing.median_us;
    row.Set("kernels", static_cast<int64_t>(sources.size()))
        .Set("baseline_us", alone_us)
        .Set("ratio", ratio)
        .Set("of_limit", ratio / threads);
    row.SetBars(BarsOf("of_limit >= 0.8"));
  }
  AddMachine(row);
  return row;
}

absl::Status RunAll() {
  std::vector<Row> rows;
  const int rounds = IsQuick() ? 1 : absl::GetFlag(FLAGS_rounds);
  for (absl::string_view arch : {"sm_80", "sm_90a", "sm_100"}) {
    for (const WorkloadInfo& workload : Workloads()) {
      if (!workload.optimizer) continue;
      ASSIGN_OR_RETURN(const std::string kernel, KernelOfStep(workload));
      if (kernel.empty()) continue;
      ASSIGN_OR_RETURN(rows.emplace_back(),
                       Measure(std::string(workload.name), arch, {kernel}, 1, rounds));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> kernels,
                   DifferentKernels(absl::GetFlag(FLAGS_kernels)));
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (int threads = 2; threads <= cores; threads *= 2) {
    ASSIGN_OR_RETURN(rows.emplace_back(),
                     Measure(absl::StrCat(kernels.size(), " variants"), "sm_90a", kernels, threads,
                             std::max(3, rounds / 2)));
  }
  return Show(
      rows,
      ColumnsOf("kernel|text|case, arch, threads|%.0f, time|time|ours_us, +-|100*%.1f%%|spread, "
                "one thread|time|baseline_us, of limit|ratio, bar, met|yes"));
}

const Registered kBenchmark({.name = "nvrtc",
                             .purpose = "times compiles of kernels by NVRTC",
                             .heeds = {"quick"},
                             .positive = {"rounds", "kernels"},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
