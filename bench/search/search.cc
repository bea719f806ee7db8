// Compares searches of the tuner with the exhaustive one: what they pick, and how long they
// measure.

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/measure/statistics.h"
#include "autotune/search/kept_variants.h"
#include "autotune/search/tuner.h"
#include "bench/harness/rounds.h"
#include "bench/harness/user.h"
#include "bench/search/replay.h"
#include "bench/search/subjects.h"
#include "coconet/base/status.h"
#include "runtime/world.h"

ABSL_FLAG(std::vector<std::string>, case, {}, "workloads, comma-separated; default: all");
ABSL_FLAG(int, ranks, 2, "ranks, threads of this process");
ABSL_FLAG(int, replays, 20, "replays of the recorded rounds");
ABSL_FLAG(double, beside_budget, 8, "seconds of each replay beside a load");
ABSL_FLAG(int, live, 0, "searches on the ranks, beside the replays");
ABSL_FLAG(int, most, 250, "most variants of a workload; a larger space is sampled");
ABSL_FLAG(int64_t, n, 1 << 18, "elements of an optimizer's vector");

namespace coconet::bench {
namespace {

constexpr double kNear = 1.03, kNearBeside = 1.05;

/// What a search picked and what its samples took.
struct Pick {
  int variant = -1;
  double measuring_s = 0;
  int tried = 0;
};

/// What a search on the ranks knows in the end.
struct Searched {
  Pick pick;
  std::vector<Entrant> entrants;
  int baseline = 0;
  std::vector<VariantResult> results;                       // by variant
  std::vector<std::vector<VariantRunner::Sample>> samples;  // by variant

  /// A variant's median, as if all rounds had been alike.
  double Us(size_t variant) const { return results[variant].timing.median_us; }
};

/// Passes all calls to another runner, and keeps the samples.
class Recorder final : public VariantRunner {
 public:
  Recorder(VariantRunner& inner, size_t variants) : inner_(inner), samples_(variants) {}

  absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& stop) override {
    return inner_.Compile(variants, stop);
  }
  absl::StatusOr<std::optional<Failure>> Load(int v) override { return inner_.Load(v); }
  absl::StatusOr<std::optional<Failure>> Verify(int v) override { return inner_.Verify(v); }
  Facts FactsOf(int v) const override { return inner_.FactsOf(v); }
  Trust TrustIn(int v) const override { return inner_.TrustIn(v); }
  absl::StatusOr<Sample> Time(int v, int warm_up, int steps) override {
    absl::StatusOr<Sample> sample = inner_.Time(v, warm_up, steps);
    if (sample.ok()) {
      seconds_ += 1e-6 * sample->us * (warm_up + steps);
      if (!sample->failure.has_value()) samples_[v].push_back(*sample);
    }
    return sample;
  }
  absl::StatusOr<double> LoadByOthers() override { return inner_.LoadByOthers(); }
  void Unload(int v) override { inner_.Unload(v); }

  const std::vector<std::vector<Sample>>& samples() const { return samples_; }
  double seconds() const { return seconds_; }

 private:
  VariantRunner& inner_;
  std::vector<std::vector<Sample>> samples_;
  double seconds_ = 0;
};

/// The variants of a bound program on the ranks of a world, at most `most`, which a seed draws.
absl::StatusOr<VariantSet> VariantsOf(const Graph& program, const ConfigSpace& space, int most) {
  ASSIGN_OR_RETURN(VariantSet set, EnumerateVariants(program, space));
  ExpectTimes(space, set);
  const int count = static_cast<int>(set.variants.size());
  std::vector<int> chosen;
  for (int v = 0; v < count; ++v) {
    if (v != set.baseline) chosen.push_back(v);
  }
  std::mt19937_64 random(most);
  absl::c_shuffle(chosen, random);
  chosen.resize(std::min(chosen.size(), static_cast<size_t>(most - 1)));
  chosen.push_back(set.baseline);
  absl::c_sort(chosen);
  std::vector<int> none;
  return OnlyKept(std::move(set), chosen, none);
}

/// Collective. Searches on the real ranks, without a tuning cache. The kernels may be compiled.
absl::StatusOr<Searched> Search(Rank& rank, const Graph& program, const VariantSet& set,
                                SearchKind kind, uint64_t seed, double budget_s) {
  ASSIGN_OR_RETURN(const Run run, MakeRunner(rank, program, set, seed));
  Recorder recorder(*run.runner, set.variants.size());
  TunerOptions options{.budget_s = budget_s, .start_s = SecondsNow(), .seed = seed, .search = kind};
  // Pairs of the winner and the baseline alone are no rounds of all.
  options.settles = kind != SearchKind::kExhaustive;
  if (rank.rank() == 0) options.seconds = SecondsNow;
  std::vector<Entrant> entrants = run.runner->Entrants();
  ASSIGN_OR_RETURN(Tuned tuned, Tune(entrants, set.baseline, recorder, rank.exchange(), options));
  return Searched{{tuned.best, recorder.seconds(), tuned.record.search.tried},
                  std::move(entrants),
                  set.baseline,
                  std::move(tuned.variants),
                  recorder.samples()};
}

/// Collective. Searches exhaustively. The result's samples are of the same rounds, in which all
/// variants ran one after the other, to the end; those that failed have none.
absl::StatusOr<Searched> Record(Rank& rank, const Graph& program, const VariantSet& set,
                                double budget_s) {
  ASSIGN_OR_RETURN(Searched all, Search(rank, program, set, SearchKind::kExhaustive, 1, budget_s));
  constexpr int64_t kLeastRounds = 20;
  for (size_t v = 0; rank.rank() == 0 && v < all.results.size(); ++v) {
    std::vector<VariantRunner::Sample>& samples = all.samples[v];
    if (FailsForGood(all.results[v].verdict)) {
      samples.clear();
    } else if (std::ssize(samples) < kLeastRounds) {
      return absl::DeadlineExceededError(
          "the exhaustive search has too few rounds; give it more time by --budget, or fewer "
          "variants by --most");
    } else {
      // The last samples are of the same rounds, in which all took part.
      samples.erase(samples.begin(), samples.end() - kLeastRounds);
    }
  }
  return all;
}

/// Searches with recorded samples.
absl::StatusOr<Pick> Replay(const Searched& recording, SearchKind kind, uint64_t seed) {
  Replayer replayer(recording.samples, seed);
  Solo solo;
  TunerOptions options{.budget_s = 1e9, .seed = seed, .search = kind};
  options.settles = false;  // a search is judged by what it picks
  options.seconds = [&replayer] { return replayer.seconds(); };
  ASSIGN_OR_RETURN(const Tuned tuned,
                   Tune(recording.entrants, recording.baseline, replayer, solo, options));
  return Pick{tuned.best, replayer.seconds(), tuned.record.search.tried};
}

/// What searches beside a load have stored.
struct Numbers {
  int64_t given = 0, off = 0, far = 0, near = 0;
};

/// Searches with recorded samples beside a load, and judges the speed-up that is stored by that of
/// the clean rounds that were recorded.
absl::Status ReplayBeside(const Searched& recording, double best_us, uint64_t seed,
                          Numbers& numbers) {
  Replayer replayer(recording.samples, seed, InjectedLoad(seed));
  Solo solo;
  TunerOptions options{.budget_s = absl::GetFlag(FLAGS_beside_budget), .seed = seed};
  options.seconds = [&replayer] { return replayer.seconds(); };
  ASSIGN_OR_RETURN(const Tuned tuned,
                   Tune(recording.entrants, recording.baseline, replayer, solo, options));
  std::vector<double> ratios;
  const auto &over = recording.samples[recording.baseline], &under = recording.samples[tuned.best];
  for (size_t r = 0; r < under.size(); ++r) {
    if (std::max(over[r].lost, under[r].lost) <= RaceOptions().most_lost)
      ratios.push_back(over[r].us / under[r].us);
  }
  if (ratios.empty())
    return absl::UnavailableError("each round was recorded beside other programs");
  const double truth = Median(ratios);
  const SpeedUp& stored = tuned.record.speed_up;
  numbers.near += recording.Us(tuned.best) <= kNearBeside * best_us ? 1 : 0;
  // Where the baseline is best, there is nothing to give.
  if (tuned.best != recording.baseline && !stored.IsKnown()) return absl::OkStatus();
  ++numbers.given;
  numbers.off += truth < stored.low || truth > stored.high ? 1 : 0;
  numbers.far += std::abs(std::log(stored.ratio / truth)) > std::log(1.2) ? 1 : 0;
  return absl::OkStatus();
}

double BestUs(const Searched& recording) {
  double best_us = 0;
  for (size_t v = 0; v < recording.samples.size(); ++v) {
    if (recording.samples[v].empty()) continue;
    if (best_us == 0 || recording.Us(v) < best_us) best_us = recording.Us(v);
  }
  return best_us;
}

absl::StatusOr<Row> RowBeside(const Searched& recording) {
  Numbers numbers;
  const int replays = absl::GetFlag(FLAGS_replays);
  const double best_us = BestUs(recording), n = replays;
  for (int replay = 0; replay < replays; ++replay)
    RETURN_IF_ERROR(ReplayBeside(recording, best_us, replay + 1, numbers));
  Row row;
  row.Set("variants", static_cast<int64_t>(recording.entrants.size()))
      .Set("best_us", best_us)
      .Set("picks", int64_t{replays})
      .Set("near", numbers.near)
      .Set("near_share", static_cast<double>(numbers.near) / n)
      .Set("given", static_cast<double>(numbers.given) / n)
      .Set("off_share", static_cast<double>(numbers.off) / std::max<double>(numbers.given, 1))
      .Set("far", numbers.far);
  row.SetBars(BarsOf("near_share >= 0.95, given >= 0.6, off_share <= 0.05, far <= 0"));
  return row.Set("bars_met", MetOf(row));
}

Row RowOf(const Searched& recording, const std::vector<Pick>& picks) {
  const double best_us = BestUs(recording);
  std::vector<double> shares, tried;
  int64_t near = 0;
  double worst = 0;
  for (const Pick& pick : picks) {
    const double ratio = recording.Us(pick.variant) / best_us;
    near += ratio <= kNear ? 1 : 0;
    worst = std::max(worst, ratio);
    shares.push_back(pick.measuring_s / recording.pick.measuring_s);
    tried.push_back(pick.tried);
  }
  Row row;
  row.Set("variants", static_cast<int64_t>(recording.entrants.size()))
      .Set("tried", Median(tried))
      .Set("best_us", best_us)
      .Set("picks", static_cast<int64_t>(picks.size()))
      .Set("near", near)
      .Set("near_share", static_cast<double>(near) / static_cast<double>(picks.size()))
      .Set("worst", worst)
      .Set("share", Median(shares))
      .Set("share_most", *std::max_element(shares.begin(), shares.end()))
      .Set("exhaustive_s", recording.pick.measuring_s);
  row.SetBars(BarsOf("near_share >= 0.95, share <= 0.25"));
  return row.Set("bars_met", MetOf(row));
}

absl::StatusOr<std::vector<Row>> Measure(const WorkloadInfo& workload) {
  const int ranks = absl::GetFlag(FLAGS_ranks);
  const double budget_s = TuningBudget(570, 60);
  const int most = IsQuick() ? 12 : absl::GetFlag(FLAGS_most);
  ASSIGN_OR_RETURN(const Graph program,
                   ProgramOf(workload, DType::kF32, absl::GetFlag(FLAGS_n), ranks));
  Searched recording;
  std::vector<Pick> live;
  RETURN_IF_ERROR(RunWorld({.ranks = ranks}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const VariantSet set, VariantsOf(program, SpaceHere(rank), most));
    ASSIGN_OR_RETURN(Searched recorded, Record(rank, program, set, budget_s));
    if (rank.rank() == 0) recording = std::move(recorded);
    for (int i = 0; i < absl::GetFlag(FLAGS_live); ++i) {
      ASSIGN_OR_RETURN(const Searched searched,
                       Search(rank, program, set, SearchKind::kAuto, 100 + i, budget_s));
      if (rank.rank() == 0) live.push_back(searched.pick);
    }
    return absl::OkStatus();
  }));
  std::vector<Row> rows;
  const auto add = [&](const std::string& search, const std::vector<Pick>& picks) {
    rows.push_back(RowOf(recording, picks).Set("ranks", int64_t{ranks}).Set("search", search));
  };
  for (SearchKind kind : {SearchKind::kAuto, SearchKind::kRacing, SearchKind::kEvolution}) {
    std::vector<Pick> picks;
    for (int replay = 0; replay < absl::GetFlag(FLAGS_replays); ++replay) {
      ASSIGN_OR_RETURN(picks.emplace_back(), Replay(recording, kind, replay + 1));
    }
    add(absl::StrCat(Name(kind), ", replayed"), picks);
  }
  if (!live.empty()) add("auto, live", live);
  ASSIGN_OR_RETURN(Row beside, RowBeside(recording));
  rows.push_back(beside.Set("ranks", int64_t{ranks}).Set("search", "auto, replayed beside a load"));
  return rows;
}

absl::Status RunAll() {
  ASSIGN_OR_RETURN(const std::vector<Row> rows,
                   RowsOfWorkloads(absl::GetFlag(FLAGS_case), Measure));
  return Show(
      rows,
      ColumnsOf("case, search, variants|%.0f, tried|text, best|time, within 3 %|*, worst|ratio, "
                "measuring|percent|share, exhaustive s|text, given|percent, "
                "off|percent|off_share, far|text, met|result|bars_met",
                {{"within 3 %", [](const Row& row) {
                    return absl::StrFormat("%.0f of %.0f", row.Number("near"), row.Number("picks"));
                  }}}));
}

const Registered kBenchmark({.name = "search",
                             .purpose = "compares the tuner's searches with the exhaustive one",
                             .heeds = {"quick", "budget"},
                             .positive = {"ranks", "replays", "beside_budget", "most"},
                             .run = RunAll});

}  // namespace
}  // namespace coconet::bench
