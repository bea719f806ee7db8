// Whether a job that explores in its own steps finds the best variant, and what that costs.

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/measure/statistics.h"
#include "autotune/session/session.h"
#include "bench/harness/machine.h"
#include "bench/harness/rounds.h"
#include "bench/harness/user.h"
#include "bench/harness/workload.h"
#include "bench/search/subjects.h"
#include "bench/tuning/pairs.h"
#include "coconet/base/status.h"
#include "jit/compile/temp_dir.h"

ABSL_FLAG(std::vector<std::string>, case, {}, "adam or mlp, comma-separated; default: both");
ABSL_FLAG(int, calls, 10'000, "steps of a job");
ABSL_FLAG(int, jobs, 2, "jobs, one after the other, with one tuning cache");
ABSL_FLAG(int, rounds, 200, "rounds in which a job's variant is timed against the best");
ABSL_FLAG(double, exhaustive_s, 240, "seconds of the exhaustive tuning");

namespace coconet::bench {
namespace {

constexpr int kRanks = 2;
constexpr int kWindow = 100;

/// What rank 0 has seen of a job.
struct Job {
  std::vector<double> us;      // by call
  std::vector<char> explored;  // by call
  /// By call: whether another thread took the core of some rank.
  std::vector<char> disturbed;
  TuningRecord record;  // after it
  double compile_s = 0;
};

/// How often other threads took this thread's core.
int64_t Preemptions() {
  rusage usage{};
  CC_CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
  return usage.ru_nivcsw;
}

absl::StatusOr<Job> RunJob(const Graph& program, const std::string& cache_file) {
  Job job;
  job.disturbed.resize(absl::GetFlag(FLAGS_calls));
  std::mutex mutex;  // of job.disturbed
  SessionOptions options;
  options.cache_file = cache_file;
  options.policy = Policy::kOnline;
  options.budget_s = TuningBudget(60, 5);
  options.progress = [](absl::string_view line) {
    if (!absl::StartsWith(line, "at most")) absl::FPrintF(stderr, "  %s\n", line);
  };
  options.warn = [](absl::string_view line) { absl::FPrintF(stderr, "  warning: %s\n", line); };
  const auto body = [&](Session& session) -> absl::Status {
    const double begin_s = SecondsNow();
    ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program));
    const double compile_s = SecondsNow() - begin_s;
    ASSIGN_OR_RETURN(BoundProgram bound, tuned.Bind({}));
    for (const TensorInfo& tensor : tuned.tensors()) {
      if (tensor.role != BufferRole::kInput || !tensor.type.shape.empty()) continue;
      ASSIGN_OR_RETURN(const ScalarRef scalar, bound.Scalar(tensor.name));
      RETURN_IF_ERROR(bound.Set(scalar, 1.0));
    }
    const int calls = absl::GetFlag(FLAGS_calls);
    std::vector<double> us(calls);
    std::vector<char> explored(calls), disturbed(calls);
    for (int call = 0; call < calls; ++call) {
      const int64_t before = Preemptions();
      const double start_s = SecondsNow();
      RETURN_IF_ERROR(bound.Run());
      us[call] = 1e6 * (SecondsNow() - start_s);
      explored[call] = bound.explored();
      disturbed[call] = Preemptions() != before;
    }
    {
      const std::lock_guard<std::mutex> lock(mutex);
      for (int call = 0; call < calls; ++call) job.disturbed[call] |= disturbed[call];
    }
    if (session.rank() != 0) return absl::OkStatus();
    job.us = std::move(us);
    job.explored = std::move(explored);
    job.compile_s = compile_s;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(RunRanks(kRanks, body, options));
  options.policy = Policy::kCacheOnly;
  options.progress = nullptr;
  RETURN_IF_ERROR(RunRanks(
      kRanks,
      [&](Session& session) -> absl::Status {
        ASSIGN_OR_RETURN(const TunedProgram tuned, session.Compile(program));
        if (session.rank() == 0) job.record = tuned.record();
        return absl::OkStatus();
      },
      options));
  return job;
}

/// The share by which the `chosen` calls took longer than the other calls near them, of each window
/// of 100 calls, ascending.
std::vector<double> Excess(const std::vector<double>& us, const std::vector<char>& others,
                           const std::vector<char>& chosen) {
  constexpr int kNear = 6;  // calls on each side
  std::vector<double> excess(us.size());
  const auto count = static_cast<int>(us.size());
  for (int i = 0; i < count; ++i) {
    if (!chosen[i]) continue;
    std::vector<double> near;
    for (const int way : {-1, 1}) {
      int found = 0;
      for (int at = i + way; at >= 0 && at < count && found < kNear; at += way) {
        if (others[at] || at == i) continue;
        near.push_back(us[at]);
        ++found;
      }
    }
    excess[i] = us[i] / Median(near) - 1;
  }
  std::vector<double> windows;
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += excess[i];
    if (i >= kWindow) sum -= excess[i - kWindow];
    if (i + 1 >= kWindow) windows.push_back(sum / kWindow);
  }
  std::sort(windows.begin(), windows.end());
  return windows;
}

/// As many calls of the incumbent, at random: what their excess is, noise makes.
std::vector<char> AsMany(const std::vector<char>& explored) {
  std::vector<char> chosen(explored.size());
  std::mt19937_64 random(1);
  for (size_t i = 0; i < explored.size(); ++i) {
    if (!explored[i]) continue;
    for (int attempt = 0; attempt < 100; ++attempt) {
      const size_t at = std::min(explored.size() - 1, i - std::min<size_t>(i, 20) + random() % 40);
      if (explored[at] || chosen[at]) continue;
      chosen[at] = 1;
      break;
    }
  }
  return chosen;
}

absl::Status Measure(const std::string& name, std::vector<Row>& rows) {
  ASSIGN_OR_RETURN(const std::vector<WorkloadInfo> workloads, WorkloadsOf({name}));
  Subject subject{.name = name, .n = 1 << 20, .ranks = kRanks};
  if (!workloads[0].presets.empty()) subject.preset = workloads[0].presets[0].name;
  ASSIGN_OR_RETURN(const Graph program, ProgramOf(workloads[0], DType::kF32, subject.n, kRanks));
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  const std::string cache = folder->path() + "/cache";
  setenv("COCONET_CACHE_DIR", cache.c_str(), 1);
  std::vector<Job> jobs;
  for (int j = 0; j < absl::GetFlag(FLAGS_jobs); ++j) {
    absl::FPrintF(stderr, "%s: job %d\n", name, j + 1);
    ASSIGN_OR_RETURN(jobs.emplace_back(), RunJob(program, folder->path() + "/tuning.db"));
  }
  absl::FPrintF(stderr, "%s: exhaustive tuning\n", name);
  ASSIGN_OR_RETURN(const Stored best, TuneApart(subject, absl::GetFlag(FLAGS_exhaustive_s),
                                                "exhaustive", cache, folder->path()));
  std::vector<Choice> variants = {best.best};
  for (const Job& job : jobs)
    variants.push_back({job.record.best.trace, Text(job.record.best.config)});
  ASSIGN_OR_RETURN(const Rounds rounds,
                   RoundsOf(subject, variants, absl::GetFlag(FLAGS_rounds), cache, folder->path()));
  for (size_t j = 0; j < jobs.size(); ++j) {
    const Job& job = jobs[j];
    std::vector<double> ratios;
    for (size_t r = 0; r < rounds.us[0].size(); ++r)
      ratios.push_back(rounds.us[j + 1][r] / rounds.us[0][r]);
    const std::vector<double> windows = Excess(job.us, job.explored, job.explored);
    std::vector<char> undisturbed = job.explored;
    for (size_t i = 0; i < undisturbed.size(); ++i) undisturbed[i] &= !job.disturbed[i];
    const std::vector<double> calm = Excess(job.us, job.explored, undisturbed);
    std::vector<char> chosen = AsMany(job.explored), others = chosen;
    for (size_t i = 0; i < others.size(); ++i) others[i] = others[i] | job.explored[i];
    const std::vector<double> noise = Excess(job.us, others, chosen);
    Row row;
    row.Set("case", name)
        .Set("ranks", int64_t{kRanks})
        .Set("job", static_cast<int64_t>(j + 1))
        .Set("calls", static_cast<int64_t>(job.us.size()))
        .Set("explored",
             static_cast<int64_t>(std::count(job.explored.begin(), job.explored.end(), 1)))
        .Set("compile_s", job.compile_s)
        .Set("ours_us", Median(job.us))
        .Set("raw_worst_excess", windows.back())
        .Set("worst_excess", calm.back())
        .Set("disturbed",
             static_cast<int64_t>(std::count(job.disturbed.begin(), job.disturbed.end(), 1)))
        .Set("noise_excess", noise.back())
        .Set("over_best", Median(ratios))
        .Set("tried", int64_t{job.record.search.tried})
        .Set("schedule", job.record.best.schedule)
        .Set("best_schedule", best.schedule)
        .Set("best_complete", best.complete);
    row.SetBars(BarsOf("worst_excess <= 0.05, over_best <= 1.03"));
    AddMachine(row);
    rows.push_back(std::move(row));
  }
  return absl::OkStatus();
}

absl::Status RunAll() {
  const std::vector<std::string> wanted = absl::GetFlag(FLAGS_case);
  std::vector<Row> rows;
  for (const char* name : {"adam", "mlp"}) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    RETURN_IF_ERROR(WithContext(Measure(name, rows), name));
  }
  return Show(rows,
              ColumnsOf("case, job|%.0f, calls|%.0f, explored|%.0f, compile s|%.1f|compile_s, "
                        "disturbed|%.0f, step us|%.1f|ours_us, "
                        "worst excess|100*%.1f%%|worst_excess, "
                        "with disturbed calls|100*%.1f%%|raw_worst_excess, "
                        "of incumbents so|100*%.1f%%|noise_excess, over best|%.3f|over_best, met"));
}

const Registered kBenchmark({.name = "online",
                             .purpose = "judges jobs that explore variants in their own steps",
                             .heeds = {"quick", "budget"},
                             .positive = {"calls", "jobs", "rounds"},
                             .words = {{"case", "adam, mlp"}},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
