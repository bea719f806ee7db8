// What the variants that a search keeps by their expected times are worth: the best of them is
// compared with the best of all of the fastest schedules, and of others at random.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "autotune/measure/statistics.h"
#include "autotune/search/kept_variants.h"
#include "bench/harness/user.h"
#include "bench/search/subjects.h"
#include "coconet/base/status.h"
#include "runtime/world.h"

ABSL_FLAG(std::vector<std::string>, case, {},
          "workloads, comma-separated; default: all of one stage");
ABSL_FLAG(int, ranks, 2, "ranks, threads of this process");
ABSL_FLAG(int, most, 48,
          "of the variants that are kept, how many are timed: those expected to be fastest");
ABSL_FLAG(int, others, 16,
          "variants at random that are timed beside those and all of the fastest schedules");
ABSL_FLAG(int64_t, n, 1 << 18, "elements of an optimizer's vector");
ABSL_FLAG(bool, list, false, "print all variants with their times");

namespace coconet::bench {
namespace {

constexpr double kNear = 1.03;
constexpr double kSampleUs = 1000;  // length of a sample
constexpr int kMostSteps = 1 << 16;
constexpr size_t kBatch = 16;  // variants compiled together
constexpr int kFirstRounds = 3, kTurns = 9, kLastRounds = 31;
constexpr int kSchedules = 3;     // of which all variants are timed
constexpr size_t kFinalists = 5;  // of the part, and of all
/// What is slower than the best by this factor in one round takes no part in further ones.
constexpr double kHopeless = 1.5;

/// How a chosen part of a program's variants compares with many more.
struct Screened {
  std::vector<double> us;  // by variant: the median of its first rounds; 0: it was not timed
  int best = -1;           // of all that were timed
  int best_of_part = -1;
  double ratio = 0;  // of the time of `best_of_part` over that of `best`, in rounds of these two
  int timed = 0;
};

/// Times variants on the ranks. Its answers are the same on all ranks, as the runner's are.
class Screening {
 public:
  Screening(VariantRunner& runner, size_t variants)
      : runner_(runner), samples_(variants), steps_(variants) {}

  /// Compiles and loads the variants and times them in rounds.
  absl::Status Enter(absl::Span<const int> variants) {
    std::vector<int> entered;
    for (size_t begin = 0; begin < variants.size(); begin += kBatch) {
      const absl::Span<const int> batch = variants.subspan(begin, kBatch);
      ASSIGN_OR_RETURN(const std::vector<std::optional<Failure>> failures,
                       runner_.Compile(batch, [] { return false; }));
      for (size_t i = 0; i < batch.size(); ++i) {
        if (failures[i].has_value()) continue;
        ASSIGN_OR_RETURN(const bool runs, FirstSteps(batch[i]));
        if (runs) entered.push_back(batch[i]);
      }
    }
    for (int round = 0; round < kFirstRounds; ++round) {
      for (int v : entered) {
        if (round > 0 && Us(v) >= kHopeless * Us(Best(entered))) continue;
        ASSIGN_OR_RETURN(samples_[v].emplace_back(), StepUs(v));
      }
    }
    return absl::OkStatus();
  }

  /// The medians of rounds of these variants alone, in turns.
  absl::StatusOr<std::vector<double>> Again(absl::Span<const int> variants) {
    std::vector<std::vector<double>> samples(variants.size());
    for (int turn = 0; turn < kTurns; ++turn) {
      for (size_t i = 0; i < variants.size(); ++i) {
        ASSIGN_OR_RETURN(samples[i].emplace_back(), StepUs(variants[i]));
      }
    }
    std::vector<double> medians;
    for (const std::vector<double>& one : samples) medians.push_back(Median(one));
    return medians;
  }

  /// The median, over rounds, of the time of `a` over that of `b`.
  absl::StatusOr<double> Ratio(int a, int b) {
    std::vector<double> ratios;
    for (int round = 0; a != b && round < kLastRounds; ++round) {
      const bool swapped = round % 2 == 1;
      ASSIGN_OR_RETURN(const double first, StepUs(swapped ? b : a));
      ASSIGN_OR_RETURN(const double second, StepUs(swapped ? a : b));
      ratios.push_back(swapped ? second / first : first / second);
    }
    return ratios.empty() ? 1 : Median(ratios);
  }

  bool Timed(int v) const { return !samples_[v].empty(); }
  double Us(int v) const { return Median(samples_[v]); }
  int Best(absl::Span<const int> variants) const {
    int best = -1;
    for (int v : variants) {
      if (Timed(v) && (best < 0 || Us(v) < Us(best))) best = v;
    }
    return best;
  }

 private:
  absl::StatusOr<bool> FirstSteps(int v) {
    ASSIGN_OR_RETURN(const std::optional<Failure> failure, runner_.Load(v));
    if (failure.has_value()) return false;
    for (int attempt = 0; attempt < 2; ++attempt) {  // the first step is cold
      ASSIGN_OR_RETURN(const VariantRunner::Sample sample, runner_.Time(v, attempt, 1 + attempt));
      if (sample.failure.has_value()) return false;
      steps_[v] = static_cast<int>(
          std::clamp(std::ceil(kSampleUs / std::max(sample.us, 1e-3)), 1.0, double{kMostSteps}));
    }
    return true;
  }
  absl::StatusOr<double> StepUs(int v) {
    ASSIGN_OR_RETURN(const VariantRunner::Sample sample,
                     runner_.Time(v, steps_[v] > 10 ? steps_[v] / 10 : 0, steps_[v]));
    if (sample.failure.has_value()) return absl::InternalError(sample.failure->reason);
    return sample.us;
  }

  VariantRunner& runner_;
  std::vector<std::vector<double>> samples_;
  std::vector<int> steps_;  // of a sample
};

/// The variants that are timed beside those of `part`.
std::vector<int> Others(const Screening& screening, const VariantSet& set,
                        absl::Span<const int> part, int others) {
  const std::vector<int> schedules = SchedulesOf(set);
  std::vector<int> order;
  absl::c_copy_if(part, std::back_inserter(order), [&](int v) { return screening.Timed(v); });
  absl::c_stable_sort(order, [&](int a, int b) { return screening.Us(a) < screening.Us(b); });
  std::set<int> fastest;
  for (int v : order) {
    if (fastest.size() < kSchedules) fastest.insert(schedules[v]);
  }
  std::vector<int> all, rest;
  for (int v = 0; v < static_cast<int>(schedules.size()); ++v) {
    if (!absl::c_linear_search(part, v)) (fastest.contains(schedules[v]) ? all : rest).push_back(v);
  }
  std::mt19937_64 random(others);
  absl::c_shuffle(rest, random);
  rest.resize(std::min(rest.size(), static_cast<size_t>(others)));
  absl::c_copy(rest, std::back_inserter(all));
  return all;
}

/// Collective. Times the variants of `part`; then all of the schedules that were fastest, and
/// `others` more that a seed draws; then the fastest of the part and of all again, in turns; and at
/// last the best of each in rounds that decided nothing before, so that noise in the choice of the
/// best does not count as speed.
absl::StatusOr<Screened> Screen(Rank& rank, const Graph& program, const VariantSet& set,
                                absl::Span<const int> part, int others) {
  ASSIGN_OR_RETURN(const Run run, MakeRunner(rank, program, set, 1));
  Screening screening(*run.runner, set.variants.size());
  RETURN_IF_ERROR(screening.Enter(part));
  RETURN_IF_ERROR(screening.Enter(Others(screening, set, part, others)));
  Screened screened;
  std::vector<int> timed;
  for (int v = 0; v < static_cast<int>(set.variants.size()); ++v) {
    screened.us.push_back(screening.Timed(v) ? screening.Us(v) : 0);
    if (screening.Timed(v)) timed.push_back(v);
  }
  screened.timed = static_cast<int>(timed.size());
  absl::c_stable_sort(timed, [&](int a, int b) { return screened.us[a] < screened.us[b]; });
  std::vector<int> finalists;
  size_t of_part = 0;
  for (size_t i = 0; i < timed.size(); ++i) {
    const bool is_of_part = absl::c_linear_search(part, timed[i]);
    if (i < kFinalists || (is_of_part && of_part < kFinalists)) finalists.push_back(timed[i]);
    of_part += is_of_part ? 1 : 0;
  }
  if (of_part == 0) return absl::InternalError("none of the variants that are kept runs");
  ASSIGN_OR_RETURN(const std::vector<double> again, screening.Again(finalists));
  double best_us = 0, part_us = 0;
  for (size_t i = 0; i < finalists.size(); ++i) {
    if (screened.best < 0 || again[i] < best_us) screened.best = finalists[i], best_us = again[i];
    if (!absl::c_linear_search(part, finalists[i])) continue;
    if (screened.best_of_part < 0 || again[i] < part_us)
      screened.best_of_part = finalists[i], part_us = again[i];
  }
  screened.us[screened.best] = best_us;
  ASSIGN_OR_RETURN(screened.ratio, screening.Ratio(screened.best_of_part, screened.best));
  return screened;
}

std::string WordsOf(const VariantSet& set, int variant) {
  return absl::StrCat(Describe(set.variants[variant]).schedule, " | ",
                      Text(set.variants[variant].config));
}

Row RowOf(const Screened& screened, const VariantSet& set, const std::vector<int>& kept) {
  for (size_t v = 0; absl::GetFlag(FLAGS_list) && v < set.variants.size(); ++v) {
    if (screened.us[v] == 0) continue;
    std::printf("%s | %.2f us, expected %.2f%s\n", WordsOf(set, static_cast<int>(v)).c_str(),
                screened.us[v], set.variants[v].prior_us,
                absl::c_binary_search(kept, static_cast<int>(v)) ? ", kept" : "");
  }
  Row row;
  row.Set("variants", int64_t{screened.timed})
      .Set("kept", static_cast<int64_t>(kept.size()))
      .Set("kept_of_schedule", MostOfSchedule(set, kept))
      .Set("all", static_cast<int64_t>(set.variants.size()))
      .Set("best_us", screened.us[screened.best])
      .Set("best_config", WordsOf(set, screened.best))
      .Set("best_of_kept", WordsOf(set, screened.best_of_part))
      .Set("ratio", screened.ratio)
      .Set("near", int64_t{screened.ratio <= kNear});
  return row;
}

/// The kept variants that are expected to be the fastest.
std::vector<int> Fastest(const VariantSet& set, std::vector<int> kept, int most) {
  absl::c_stable_sort(
      kept, [&](int a, int b) { return set.variants[a].prior_us < set.variants[b].prior_us; });
  kept.resize(std::min(kept.size(), static_cast<size_t>(most)));
  return kept;
}

absl::StatusOr<std::vector<Row>> Measure(const WorkloadInfo& workload) {
  const int ranks = absl::GetFlag(FLAGS_ranks);
  ASSIGN_OR_RETURN(const Graph program,
                   ProgramOf(workload, DType::kF32, absl::GetFlag(FLAGS_n), ranks));
  Row row;
  RETURN_IF_ERROR(RunWorld({.ranks = ranks}, [&](Rank& rank) -> absl::Status {
    const ConfigSpace space = SpaceHere(rank);
    ASSIGN_OR_RETURN(VariantSet set, EnumerateVariants(program, space));
    ExpectTimes(space, set);
    const std::vector<int> kept = KeptVariants(space, set, {&set.baseline, 1});
    const int most = IsQuick() ? 4 : absl::GetFlag(FLAGS_most),
              others = IsQuick() ? 2 : absl::GetFlag(FLAGS_others);
    ASSIGN_OR_RETURN(const Screened screened,
                     Screen(rank, program, set, Fastest(set, kept, most), others));
    if (rank.rank() == 0) row = RowOf(screened, set, kept);
    return absl::OkStatus();
  }));
  return {{row}};
}

absl::Status RunAll() {
  ASSIGN_OR_RETURN(std::vector<Row> rows, RowsOfWorkloads(absl::GetFlag(FLAGS_case), Measure));
  double near = 0;
  int64_t measured = 0;
  for (const Row& row : rows) {
    near += row.Number("near");
    measured += TextOf(row, "error").empty() ? 1 : 0;
  }
  Row& all = rows.emplace_back();
  all.Set("case", "all").Set("near_share", near / std::max<double>(measured, 1));
  all.SetBars(BarsOf("near_share >= 0.95")).Set("bars_met", MetOf(all));
  return Show(rows,
              ColumnsOf("case, timed|%.0f|variants, kept|%.0f, a schedule|%.0f|kept_of_schedule, "
                        "of all|%.0f|all, "
                        "best|time, kept / best|ratio|ratio, best config, met|result|bars_met"));
}

const Registered kBenchmark(
    {.name = "kept",
     .purpose = "compares the best of the variants that a search keeps with the best of all",
     .heeds = {"quick"},
     .positive = {"ranks", "most"},
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
