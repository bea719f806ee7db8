#include "bench/search/screening.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "autotune/measure/statistics.h"
#include "autotune/runner/rank_runner.h"
#include "bench/search/recording.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr double kSampleUs = 1000;  // length of a sample
constexpr int kMostSteps = 1 << 16;
constexpr size_t kBatch = 16;  // variants compiled together
constexpr int kFirstRounds = 3, kTurns = 9, kLastRounds = 31;
constexpr int kSchedules = 3;     // of which all variants are timed
constexpr size_t kFinalists = 5;  // of the part, and of all
/// What is slower than the best by this factor in one round takes no part in further ones.
constexpr double kHopeless = 1.5;

/// Times variants on the ranks. Its answers are the same on all ranks, as the runner's are.
class Screening {
 public:
  Screening(VariantRunner& runner, const VariantSet& set)
      : runner_(runner), set_(set), samples_(set.variants.size()), steps_(set.variants.size()) {}

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
        if (round == 0 || Us(v) < kHopeless * Us(Best(entered))) RETURN_IF_ERROR(Sample(v));
      }
    }
    return absl::OkStatus();
  }

  /// The medians of rounds of these variants alone, in turns.
  absl::StatusOr<std::vector<double>> Again(absl::Span<const int> variants) {
    std::vector<std::vector<double>> samples(variants.size());
    for (int turn = 0; turn < kTurns; ++turn) {
      for (size_t i = 0; i < variants.size(); ++i) {
        ASSIGN_OR_RETURN(const double us, StepUs(variants[i]));
        samples[i].push_back(us);
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
  absl::Status Sample(int v) {
    ASSIGN_OR_RETURN(const double us, StepUs(v));
    samples_[v].push_back(us);
    return absl::OkStatus();
  }

  VariantRunner& runner_;
  const VariantSet& set_;
  std::vector<std::vector<double>> samples_;
  std::vector<int> steps_;  // of a sample
};

/// What is timed beside the part.
std::vector<int> Others(const Screening& screening, const VariantSet& set,
                        absl::Span<const int> part, int others) {
  const int count = static_cast<int>(set.variants.size());
  std::vector<int> schedule(count);  // by variant
  for (int v = 1; v < count; ++v)
    schedule[v] = schedule[v - 1] + (SameSchedule(set.variants[v - 1], set.variants[v]) ? 0 : 1);
  std::vector<int> order;
  absl::c_copy_if(part, std::back_inserter(order), [&](int v) { return screening.Timed(v); });
  absl::c_stable_sort(order, [&](int a, int b) { return screening.Us(a) < screening.Us(b); });
  std::set<int> fastest;
  for (int v : order) {
    if (fastest.size() < kSchedules) fastest.insert(schedule[v]);
  }
  std::vector<int> all, rest;
  for (int v = 0; v < count; ++v) {
    if (!absl::c_linear_search(part, v)) (fastest.contains(schedule[v]) ? all : rest).push_back(v);
  }
  std::mt19937_64 random(others);
  absl::c_shuffle(rest, random);
  rest.resize(std::min(rest.size(), static_cast<size_t>(others)));
  absl::c_copy(rest, std::back_inserter(all));
  return all;
}

}  // namespace

absl::StatusOr<Screened> Screen(Rank& rank, const Graph& program, const VariantSet& set,
                                absl::Span<const int> part, int others) {
  ASSIGN_OR_RETURN(const Run run, MakeRunner(rank, program, set, 1));
  Screening screening(*run.runner, set);
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

}  // namespace coconet::bench
