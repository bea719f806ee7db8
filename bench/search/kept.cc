// What the variants that a search keeps by their expected times are worth: the best of them is
// compared with the best of all of the fastest schedules, and of others at random.

#include <algorithm>
#include <cstdio>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "autotune/search/kept_variants.h"
#include "bench/harness/rounds.h"
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
constexpr double kSampleUs = 10000;  // length of a sample, of which the runner's calls are little
constexpr size_t kBatch = 16;        // variants compiled together
constexpr int kFirstRounds = 3, kTurns = 9, kLastRounds = 31;
constexpr int kSchedules = 3;     // of which all variants are timed
constexpr size_t kFinalists = 5;  // of the part, and of all

/// How a chosen part of a program's variants compares with many more.
struct Screened {
  std::vector<double> us;  // by variant: the median of its first rounds; 0: it was not timed
  int best = -1;           // of all that were timed
  int best_of_part = -1;
  double ratio = 0;  // of the time of `best_of_part` over that of `best`, in rounds of these two
  int timed = 0;
};

/// Collective. The medians of rounds of these variants alone, which are loaded.
absl::StatusOr<std::vector<double>> Rounds(Rank& rank, VariantRunner& runner,
                                           absl::Span<const int> variants, int rounds) {
  std::vector<Contender> contenders;
  for (int v : variants) {
    contenders.push_back({"", [&runner, v](int64_t steps) -> absl::Status {
                            ASSIGN_OR_RETURN(const VariantRunner::Sample sample,
                                             runner.Time(v, 0, static_cast<int>(steps)));
                            if (!sample.failure.has_value()) return absl::OkStatus();
                            return absl::InternalError(sample.failure->reason);
                          }});
  }
  ASSIGN_OR_RETURN(
      const std::vector<Finding> measured,
      MeasureInRounds(rank, contenders,
                      {.min_rounds = rounds, .max_rounds = rounds, .min_sample_us = kSampleUs}));
  std::vector<double> us;
  for (const Finding& finding : measured) us.push_back(finding.timing.median_us);
  return us;
}

/// Collective. Compiles and loads the variants, and times those that run in first rounds, of which
/// it sets the medians in `us`, by variant.
absl::Status Enter(Rank& rank, VariantRunner& runner, absl::Span<const int> variants,
                   std::vector<double>& us) {
  std::vector<int> entered;
  for (size_t begin = 0; begin < variants.size(); begin += kBatch) {
    const absl::Span<const int> batch = variants.subspan(begin, kBatch);
    ASSIGN_OR_RETURN(std::vector<std::optional<Failure>> failures,
                     runner.Compile(batch, [] { return false; }));
    for (size_t i = 0; i < batch.size(); ++i) {
      if (!failures[i].has_value()) {
        ASSIGN_OR_RETURN(failures[i], runner.Load(batch[i]));
      }
      if (failures[i].has_value()) continue;
      ASSIGN_OR_RETURN(const VariantRunner::Sample first, runner.Time(batch[i], 0, 1));
      if (!first.failure.has_value()) entered.push_back(batch[i]);
    }
  }
  ASSIGN_OR_RETURN(const std::vector<double> medians, Rounds(rank, runner, entered, kFirstRounds));
  for (size_t i = 0; i < entered.size(); ++i) us[entered[i]] = medians[i];
  return absl::OkStatus();
}

/// The variants that are timed beside those of `part`.
std::vector<int> Others(const std::vector<double>& us, const VariantSet& set,
                        absl::Span<const int> part, int others) {
  const std::vector<int> schedules = SchedulesOf(set);
  std::vector<int> order;
  absl::c_copy_if(part, std::back_inserter(order), [&](int v) { return us[v] > 0; });
  absl::c_stable_sort(order, [&](int a, int b) { return us[a] < us[b]; });
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
  Screened screened{.us = std::vector<double>(set.variants.size())};
  RETURN_IF_ERROR(Enter(rank, *run.runner, part, screened.us));
  RETURN_IF_ERROR(Enter(rank, *run.runner, Others(screened.us, set, part, others), screened.us));
  std::vector<int> timed;
  for (int v = 0; v < static_cast<int>(set.variants.size()); ++v) {
    if (screened.us[v] > 0) timed.push_back(v);
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
  ASSIGN_OR_RETURN(const std::vector<double> again, Rounds(rank, *run.runner, finalists, kTurns));
  double best_us = 0, part_us = 0;
  for (size_t i = 0; i < finalists.size(); ++i) {
    if (screened.best < 0 || again[i] < best_us) screened.best = finalists[i], best_us = again[i];
    if (!absl::c_linear_search(part, finalists[i])) continue;
    if (screened.best_of_part < 0 || again[i] < part_us)
      screened.best_of_part = finalists[i], part_us = again[i];
  }
  screened.us[screened.best] = best_us;
  ASSIGN_OR_RETURN(const std::vector<double> last,
                   Rounds(rank, *run.runner, {screened.best_of_part, screened.best}, kLastRounds));
  screened.ratio = screened.best == screened.best_of_part ? 1 : last[0] / last[1];
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
