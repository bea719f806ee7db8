#include "autotune/search/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/search/coverage.h"
#include "autotune/search/past/earlier_runs.h"
#include "autotune/search/past/settling.h"
#include "autotune/search/time_budget.h"
#include "autotune/search/trials.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Shares of the budget at which phases end: trying, rough rounds, trying more. The last rounds
/// take the rest.
constexpr double kTryShare = 0.5, kRoughShare = 0.6, kTryMoreShare = 0.75;
constexpr int kRoughRounds = 4;
constexpr size_t kBatch = 8;  // variants tried between two looks at what is promising
/// Most variants that stay loaded after a batch.
constexpr int kMostLoaded = 24;
constexpr double kStoreSeconds = 10;  // between two stores of the best so far
constexpr double kMuchLoad = 0.25;    // that progress tells of
constexpr int kMostDisturbedRuns = 3;
/// A search is worth what a job may gain by it: this share of its time. The first batch is tried
/// all the same.
constexpr double kHopedGain = 0.2;
/// Rounds between two moves to other memory.
constexpr int kRoundsInMemory = 7;
/// So long the winner, and then its speed-up, may take beyond that, within the budget, where other
/// programs disturb.
constexpr double kQuietSeconds = 5;

std::vector<std::vector<int>> FeaturesOf(const std::vector<Entrant>& entrants) {
  std::vector<std::vector<int>> features;
  for (const Entrant& e : entrants) features.push_back(e.features);
  return features;
}

std::vector<double> PriorsOf(const std::vector<Entrant>& entrants) {
  std::vector<double> prior_us;
  for (const Entrant& e : entrants) prior_us.push_back(e.prior_us);
  return prior_us;
}

/// State of one call of Tune.
class Tuning {
 public:
  Tuning(std::vector<Entrant> entrants, int baseline, VariantRunner& runner, Exchange& exchange,
         const TunerOptions& options)
      : baseline_(baseline),
        runner_(runner),
        exchange_(exchange),
        options_(options),
        kind_(KindFor(options.tries_all ? SearchKind::kRacing : options.search, entrants.size())),
        strategy_(MakeStrategy(kind_, FeaturesOf(entrants), options.seed, PriorsOf(entrants))),
        random_(options.seed),
        state_(options.anew ? SearchState() : options.earlier),
        coverage_(state_, std::numeric_limits<double>::infinity()),
        budget_({options.budget_s, options.start_s, options.seconds, options.interrupted},
                exchange),
        trials_(std::move(entrants), baseline, runner, exchange, budget_, options_),
        settling_(trials_, baseline, exchange, [this](absl::string_view text) { Say(text); }),
        stored_s_(budget_.Now()) {
    options_.drops = kind_ != SearchKind::kExhaustive;
  }

  absl::StatusOr<Tuned> Run() {
    const absl::Status searched = Search();
    if (absl::IsCancelled(searched))
      budget_.Interrupt();
    else
      RETURN_IF_ERROR(searched);
    return Finish();
  }

 private:
  absl::Status Search() {
    RETURN_IF_ERROR(earlier_.Learn(options_.journal, options_.key, trials_, exchange_));
    if (options_.journal != nullptr) settling_.SetHistory(options_.journal->History(options_.key));
    RETURN_IF_ERROR(runner_.LoadByOthers().status());
    // The baseline first: once it is measured, tuning may end at any time.
    if (trials_.IsUntried(baseline_)) RETURN_IF_ERROR(trials_.TryFirst(baseline_));
    RETURN_IF_ERROR(trials_.DecideWhenToVerify());
    if (options_.incumbent >= 0 && trials_.IsUntried(options_.incumbent))
      RETURN_IF_ERROR(trials_.TryFirst(options_.incumbent));
    for (int v : options_.favourites) {
      if (trials_.IsUntried(v)) RETURN_IF_ERROR(trials_.TryFirst(v));
    }
    ASSIGN_OR_RETURN(const std::vector<int> leaders, FromRank0(exchange_, earlier_.Leaders()));
    for (int v : leaders) {
      if (trials_.IsUntried(v)) RETURN_IF_ERROR(trials_.TryFirst(v));
    }
    TellStrategy();
    coverage_ = Coverage(state_, trials_.BestUs());
    RETURN_IF_ERROR(Explore(kTryShare));
    LimitToWorth();
    RETURN_IF_ERROR(Rounds(kRoughRounds, kRoughShare));
    RETURN_IF_ERROR(StoreBestSoFar());
    RETURN_IF_ERROR(Explore(kTryMoreShare));
    RETURN_IF_ERROR(Rounds(std::numeric_limits<int>::max(), 1));
    while (true) {  // where time is left
      if (options_.settles) RETURN_IF_ERROR(trials_.Reconsider());
      ASSIGN_OR_RETURN(const int enough, FromRank0(exchange_, HasTriedEnough()));
      if (enough != 0) break;
      ASSIGN_OR_RETURN(const bool go_on, budget_.GoOn());
      if (!go_on) break;
      RETURN_IF_ERROR(Explore(1));
      RETURN_IF_ERROR(Rounds(std::numeric_limits<int>::max(), 1));
    }
    if (!options_.settles) return absl::OkStatus();
    budget_.EndIn(kQuietSeconds);
    RETURN_IF_ERROR(Rounds(std::numeric_limits<int>::max(), 1));
    budget_.EndIn(kQuietSeconds);
    return settling_.Settle();
  }

  /// Ends the search where more of it would take longer than it can save in a job, unless the user
  /// names a kind of search that leaves nothing out.
  void LimitToWorth() {
    const bool leaves_none_out = options_.tries_all || options_.search == SearchKind::kExhaustive ||
                                 options_.search == SearchKind::kRacing;
    if (options_.job_steps > 0 && !leaves_none_out)
      budget_.SetWorth(kHopedGain * options_.job_steps * 1e-6 * trials_.BestUs());
  }

  void Say(absl::string_view text) const {
    if (options_.progress) options_.progress(text);
  }

  /// The times of variants that were tried, and those of earlier runs.
  void TellStrategy() {
    for (int v : trials_.tried()) {
      if (const Timing t = trials_.race().timing(v); t.samples > 0) strategy_->Add(v, t.median_us);
    }
    const bool rules_out = !options_.anew && state_.runs > 0 && !options_.tries_all;
    if (!earlier_.Convert(trials_, *strategy_, baseline_, rules_out))
      Say("times of earlier runs changed by different factors: trying their variants again");
  }

  std::vector<int> Untried() const {
    std::vector<int> untried;
    for (int v = 0; v < trials_.size(); ++v) {
      if (trials_.IsUntried(v)) untried.push_back(v);
    }
    return untried;
  }

  bool TriesAll() const { return kind_ == SearchKind::kExhaustive || kind_ == SearchKind::kRacing; }

  bool HasTriedEnough() const {
    const std::vector<int> untried = Untried();
    if (untried.empty()) return true;
    if (TriesAll() || coverage_.NeedsDraws(static_cast<int>(untried.size()))) return false;
    return coverage_.IsOutOfPatience() ||
           !strategy_->Promises(untried, (1 - Coverage::kGain) * trials_.BestUs());
  }

  /// Tries variants until enough were tried or that share of the budget is spent. Where compilers
  /// may run meanwhile, each batch is chosen before the one before it is tried.
  absl::Status Explore(double share) {
    ASSIGN_OR_RETURN(Batch batch, NextBatch(share, {}));
    while (!batch.variants.empty()) {
      Batch ahead;
      if (runner_.compiles_ahead()) {
        ASSIGN_OR_RETURN(ahead, NextBatch(share, batch.variants));
      }
      RETURN_IF_ERROR(trials_.Try(batch.variants, ahead.variants, [&](int v) {
        const auto at = absl::c_find(batch.variants, v) - batch.variants.begin();
        return Tried(v, /*drawn=*/at >= batch.promised);
      }));
      LimitToWorth();
      if (options_.drops && static_cast<int>(trials_.RoundUs().size()) > kMostLoaded)
        RETURN_IF_ERROR(trials_.KeepQuickest(2 * options_.race.finalists));
      ASSIGN_OR_RETURN(const int store,
                       FromRank0(exchange_, budget_.Now() - stored_s_ > kStoreSeconds));
      if (store != 0) RETURN_IF_ERROR(StoreBestSoFar());
      ASSIGN_OR_RETURN(const int over, FromRank0(exchange_, IsOver(share)));
      if (over != 0) break;
      if (ahead.variants.empty()) {
        ASSIGN_OR_RETURN(ahead, NextBatch(share, {}));
      }
      batch = std::move(ahead);
    }
    return runner_.compiles_ahead() ? runner_.CompileAhead({}) : absl::OkStatus();
  }

  absl::Status Tried(int v, bool drawn) {
    if (trials_.IsUntried(v)) return absl::OkStatus();  // it is tried again
    const VariantResult& result = trials_.result(v);
    const Timing timing = trials_.race().timing(v);
    if (timing.samples > 0) {
      strategy_->Add(v, timing.median_us);
      coverage_.Tried(drawn, trials_.BestUs());
    }
    Say(absl::StrFormat("tried %d of %d variants; best %.4g ms; %s: %s", CountOfTried(Results()),
                        trials_.size(), trials_.BestUs() / 1000, result.schedule,
                        result.reason.empty() ? absl::StrFormat("%.4g ms", timing.median_us / 1000)
                                              : result.reason));
    return absl::OkStatus();
  }

  /// Variants that are tried one after the other.
  struct Batch {
    std::vector<int> variants;
    int64_t promised = 0;  // by the strategy: the first ones; the others are drawn at random
  };

  bool IsOver(double share) const {
    return budget_.Asked() != TimeBudget::Stop::kNo || HasTriedEnough() ||
           (trials_.Fastest() >= 0 && budget_.LeftSeconds(share) < 0);
  }

  /// A batch is compiled before its first variant is tried. Where earlier runs ended in that
  /// compile, the first batch is half as large in each run, so that one of them can try it.
  size_t BatchSize() const {
    const bool has_compared = state_.tried > 1 || trials_.tried().size() > 1;
    return has_compared ? kBatch : std::max<size_t>(kBatch >> std::min(state_.runs, 3), 1);
  }

  /// What is promised by the strategy, and then as many that are drawn at random, none of them
  /// among `others`. Empty: tried enough, or the share of the budget is spent.
  absl::StatusOr<Batch> NextBatch(double share, const std::vector<int>& others) {
    std::vector<int> batch;  // how many are promised, and the variants
    if (!IsOver(share)) {
      std::vector<int> untried = Untried();
      const bool draws = !TriesAll() && coverage_.NeedsDraws(static_cast<int>(untried.size()));
      absl::c_for_each(others, [&](int v) { std::erase(untried, v); });
      const size_t size = BatchSize();
      const std::vector<int> promised = strategy_->Next(untried, draws ? (size + 1) / 2 : size);
      batch = {static_cast<int>(promised.size())};
      batch.insert(batch.end(), promised.begin(), promised.end());
      absl::c_for_each(promised, [&](int v) { std::erase(untried, v); });
      for (size_t i = 0; draws && i < size / 2 && !untried.empty(); ++i) {
        const size_t at = std::uniform_int_distribution<size_t>(0, untried.size() - 1)(random_);
        batch.push_back(untried[at]);
        untried.erase(untried.begin() + static_cast<int64_t>(at));
      }
    }
    ASSIGN_OR_RETURN(batch, FromRank0(exchange_, batch));
    if (batch.empty()) return Batch{};
    return Batch{{batch.begin() + 1, batch.end()}, batch[0]};
  }

  /// Runs at most `most` rounds within that share of the budget. Drops variants that cannot win,
  /// and the slowest where time is too short for all.
  absl::Status Rounds(int most, double share) {
    for (int round = 0; round < most; ++round) {
      ASSIGN_OR_RETURN(const bool decided, trials_.IsDecided());
      if (decided) break;
      if (options_.settles && round % kRoundsInMemory == kRoundsInMemory - 1)
        RETURN_IF_ERROR(trials_.MoveMemory().status());
      RETURN_IF_ERROR(Thin(std::min(most, options_.race.samples) - round, share));
      ASSIGN_OR_RETURN(const bool whole, trials_.Round());
      const int fastest = trials_.Fastest();
      if (!whole || fastest < 0) break;
      Say(absl::StrFormat("measured round %d: best %.4g ms, %s",
                          trials_.race().timing(fastest).samples, trials_.BestUs() / 1000,
                          trials_.result(fastest).schedule));
    }
    return ObserveLoad();
  }

  absl::Status ObserveLoad() {
    ASSIGN_OR_RETURN(const double load, runner_.LoadByOthers());
    if (load < 0) return absl::OkStatus();
    state_.load = load;
    if (load > kMuchLoad)
      Say(absl::StrFormat("other programs use %.0f %% of the cores", 100 * load));
    return absl::OkStatus();
  }

  absl::Status Thin(int rounds, double share) {
    const std::vector<double> round_us = trials_.RoundUs();
    const double left_us = 1e6 * budget_.LeftSeconds(share);
    size_t keep = 0;
    for (double sum = 0; options_.drops && keep < round_us.size(); ++keep) {
      sum += round_us[keep] * std::max(rounds, 1);
      if (sum > left_us && static_cast<int>(keep) >= options_.race.finalists) break;
    }
    ASSIGN_OR_RETURN(const int most, FromRank0(exchange_, static_cast<int>(keep)));
    return options_.drops ? trials_.KeepQuickest(most) : absl::OkStatus();
  }

  absl::StatusOr<Tuned> Finish() {
    ASSIGN_OR_RETURN(const int best, trials_.FinalWinner());
    if (best < 0) return NothingRuns();
    Tuned tuned;
    tuned.best = best;
    ASSIGN_OR_RETURN(const bool decided, trials_.IsDecided());
    state_.runs = options_.earlier.runs + 1;
    tuned.variants = Results();
    // The record is rank 0's, so that all ranks hold the same.
    TuningRecord record = MakeRecord(best, tuned.variants);
    record.complete = IsComplete(decided, record, tuned.variants);
    ASSIGN_OR_RETURN(const std::string same, exchange_.Broadcast(Encode(record)));
    ASSIGN_OR_RETURN(tuned.record, DecodeRecord(same));
    trials_.UnloadAllBut(best);
    if (options_.journal != nullptr) {
      options_.journal->Store(tuned.record, tuned.variants);
      Measured own = settling_.Own(best);
      own.load = std::max(state_.load, 0.0);
      own.measured_s = tuned.record.created_s;
      if (own.speed_up.rounds > 0) options_.journal->Remember(options_.key, own);
    }
    return tuned;
  }

  absl::Status NothingRuns() const {
    if (budget_.stop() == TimeBudget::Stop::kInterrupted)
      return absl::CancelledError("tuning was interrupted before anything was measured");
    for (int v = 0; v < trials_.size(); ++v) {
      const VariantResult& result = trials_.result(v);
      if (result.reason.empty()) continue;
      return absl::InternalError(absl::StrCat(
          "none of the ", trials_.size(), " variants runs and gives the right answer; the first, ",
          Words(result), ": ", Name(result.verdict), ": ", result.reason));
    }
    return absl::InternalError("nothing was measured");
  }

  bool IsComplete(bool decided, const TuningRecord& record,
                  const std::vector<VariantResult>& variants) const {
    const bool may_pass = absl::c_any_of(variants, [](const VariantResult& v) {
      return v.verdict == Verdict::kTimedOut || v.verdict == Verdict::kNotLoaded;
    });
    // What holds only while other programs leave the machine alone is waited for in a few runs.
    const bool holds = !options_.settles || (trials_.Doubtful() == 0 && record.speed_up.IsKnown() &&
                                             !settling_.differs());
    const bool quiet = state_.load <= options_.most_load && holds;
    const bool enough = HasTriedEnough() || budget_.worth_is_spent();
    return !options_.partial && decided && !may_pass && enough &&
           (quiet || state_.runs >= kMostDisturbedRuns);
  }

  /// What is known of all variants.
  std::vector<VariantResult> Results() const {
    const bool stopped = budget_.stop() != TimeBudget::Stop::kNo;
    std::vector<VariantResult> results;
    for (int v = 0; v < trials_.size(); ++v) {
      VariantResult& r = results.emplace_back(trials_.result(v));
      const std::optional<EarlierRuns::Time> known = earlier_.Of(v);
      if (const Timing timing = trials_.race().timing(v); timing.samples > 0) {
        r.timing = timing;
        r.load = std::max(state_.load, 0.0);
      } else if (known.has_value() && !FailsForGood(r.verdict) && v != options_.incumbent) {
        // The incumbent without a time says that its record is of another moment.
        r.timing = known->timing;
        r.load = known->load;
      }
      if (r.verdict == Verdict::kPruned && r.reason.empty())
        r.reason = Slowness(r.timing.median_us / trials_.BestUs());
      if (r.verdict != Verdict::kNotMeasured) continue;
      const bool enough = !stopped || trials_.race().timing(v).samples >= options_.race.samples;
      if (enough && trials_.race().running(v)) {
        r.verdict = Verdict::kMeasured;
      } else if (stopped) {
        r.reason = budget_.Reason();
      } else if (trials_.IsUntried(v)) {
        r.reason = budget_.worth_is_spent() ? "not tried: it would take longer than it can save"
                                            : "not tried: neither promising nor drawn";
      }
    }
    return results;
  }

  static int CountOfTried(const std::vector<VariantResult>& results) {
    return static_cast<int>(absl::c_count_if(results, [](const VariantResult& v) {
      return v.timing.samples > 0 || v.verdict != Verdict::kNotMeasured;
    }));
  }

  TuningRecord MakeRecord(int winner, const std::vector<VariantResult>& results) {
    // Where the baseline failed, the simplest variant that ran replaces it.
    int baseline = baseline_;
    for (int v = 0; v < trials_.size() && trials_.race().timing(baseline).samples == 0; ++v) {
      if (trials_.race().running(v) && trials_.race().timing(v).samples > 0) baseline = v;
    }
    TuningRecord record;
    record.key = options_.key;
    record.key_text = options_.key_text;
    record.soft = options_.soft;
    record.best = results[winner];
    record.baseline = results[baseline];
    record.speed_up = settling_.Of(winner, baseline);
    if (const int second = trials_.race().RunnerUp(winner); second >= 0)
      record.runner_up = Words(results[second]);
    for (const VariantResult& v : results) {
      if (v.bytes > 0 && (record.necessary_bytes == 0 || v.bytes < record.necessary_bytes))
        record.necessary_bytes = v.bytes;
    }
    record.variants = trials_.size();
    record.search = state_;
    record.search.left_out = options_.left_out;
    record.search.tried = CountOfTried(results);
    record.search.drawn = coverage_.drawn();
    record.search.since_gain = coverage_.since_gain();
    record.search.spent_s += std::max(budget_.Now() - options_.start_s, 0.0);
    record.created_s = absl::ToUnixSeconds(absl::Now());
    record.trust = {runner_.TrustIn(winner)};
    return record;
  }

  /// Stores the best variant so far, for the case that the job is killed.
  absl::Status StoreBestSoFar() {
    stored_s_ = budget_.Now();
    ASSIGN_OR_RETURN(const int winner, trials_.VerifiedWinner());
    if (options_.journal == nullptr || winner < 0) return absl::OkStatus();
    const std::vector<VariantResult> results = Results();
    options_.journal->Store(MakeRecord(winner, results), results);
    return absl::OkStatus();
  }

  const int baseline_;
  VariantRunner& runner_;
  Exchange& exchange_;
  TunerOptions options_;
  const SearchKind kind_;
  const std::unique_ptr<Strategy> strategy_;
  std::mt19937_64 random_;
  SearchState state_;
  Coverage coverage_;
  TimeBudget budget_;
  Trials trials_;
  EarlierRuns earlier_;
  Settling settling_;
  double stored_s_;  // time of the latest store
};

}  // namespace

absl::StatusOr<Tuned> Tune(std::vector<Entrant> entrants, int baseline, VariantRunner& runner,
                           Exchange& exchange, const TunerOptions& options) {
  return Tuning(std::move(entrants), baseline, runner, exchange, options).Run();
}

}  // namespace coconet
