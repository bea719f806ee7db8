#include "autotune/search/tuner.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/measure/race.h"
#include "autotune/search/forecast.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr double kWarmUpBelowUs = 10000;  // longer steps need no warm-up
constexpr int kMostSteps = 1 << 20;
constexpr int kAttempts = 4;  // to find the number of steps per sample
/// A variant is dropped before it is verified at the program's size when its steps take kHopeless
/// times the best's, which runs in between, and more than kHopelessUs: shorter steps are too noisy
/// to tell.
constexpr double kHopeless = 3, kHopelessUs = 20000;
constexpr int kRoughRounds = 4;
/// Where Verify takes more than this share of the budget, only leaders are verified.
constexpr double kVerifyShare = 0.01;
/// Shares of the budget at which phases end: plainest variants of groups, rough rounds, other
/// numbers of the best groups. The last rounds take the rest.
constexpr double kLookShare = 0.5, kRoughShare = 0.6, kTryShare = 0.75;

constexpr size_t kBatch = 8;  // variants tried between two forecasts
/// Other numbers rarely make a schedule faster by more than this factor.
constexpr double kWorthRefining = 1.6;
/// Length of a sample. In shorter ones, the clock's resolution and the ranks' unequal starts show.
constexpr double kSampleUs = 1000;

std::string Milliseconds(double us) { return absl::StrFormat("%.4g ms", us / 1000); }

std::vector<std::vector<int>> FeaturesOf(const std::vector<Entrant>& entrants) {
  std::vector<std::vector<int>> features;
  for (const Entrant& e : entrants) features.push_back(e.features);
  return features;
}

/// State of one call of Tune.
class Tuning {
 public:
  Tuning(std::vector<Entrant> entrants, int baseline, VariantRunner& runner, Exchange& exchange,
         const TunerOptions& options)
      : entrants_(std::move(entrants)),
        baseline_(baseline),
        runner_(runner),
        exchange_(exchange),
        options_(options),
        race_(static_cast<int>(entrants_.size()), baseline, options.seed, options.race),
        forecast_(FeaturesOf(entrants_)),
        step_us_(entrants_.size(), 0) {}

  absl::StatusOr<Tuned> Run() {
    const absl::Status searched = Search();
    if (absl::IsCancelled(searched))
      stop_ = Stop::kInterrupted;
    else
      RETURN_IF_ERROR(searched);
    return Finish();
  }

 private:
  enum class Stop : uint8_t { kNo, kBudget, kInterrupted };

  absl::Status Search() {
    RETURN_IF_ERROR(MarkEarlierFailures());
    // The baseline first: once it is measured, tuning may end at any time.
    if (Open(baseline_)) RETURN_IF_ERROR(Try({baseline_}));
    RETURN_IF_ERROR(DecideWhenToVerify());
    if (options_.incumbent >= 0 && Open(options_.incumbent))
      RETURN_IF_ERROR(Try({options_.incumbent}));
    RETURN_IF_ERROR(Explore(Of::kScouts, kLookShare));
    RETURN_IF_ERROR(Rounds(kRoughRounds, kRoughShare));
    RETURN_IF_ERROR(StoreBestSoFar());
    RETURN_IF_ERROR(Explore(Of::kAll, kTryShare));
    RETURN_IF_ERROR(Rounds(std::numeric_limits<int>::max(), 1));
    while (AnyOpen()) {  // where time is left
      ASSIGN_OR_RETURN(const bool go_on, GoOn());
      if (!go_on) break;
      RETURN_IF_ERROR(Explore(Of::kAll, 1));
      RETURN_IF_ERROR(Rounds(std::numeric_limits<int>::max(), 1));
    }
    return absl::OkStatus();
  }

  static bool Failed(Verdict verdict) { return FailsForGood(verdict) || MayPass(verdict); }
  int size() const { return static_cast<int>(entrants_.size()); }
  VariantResult& result(int v) { return entrants_[v].result; }
  /// Whether the variant is neither tried nor ruled out.
  bool Open(int v) const {
    return entrants_[v].result.verdict == Verdict::kNotMeasured &&
           entrants_[v].result.reason.empty() && !tried_.count(v);
  }
  void Say(absl::string_view text) const {
    if (options_.progress) options_.progress(text);
  }

  /// Rules out variants that failed under this key before.
  absl::Status MarkEarlierFailures() {
    std::vector<VariantResult> failures;
    if (options_.journal != nullptr) failures = options_.journal->Failures(options_.key);
    Packer known;
    known.Int(static_cast<int64_t>(failures.size()));
    for (const VariantResult& v : failures)
      known.Text(absl::StrCat(v.trace, "|", Text(v.config))).Text(v.reason);
    ASSIGN_OR_RETURN(const std::string all, exchange_.Broadcast(known.bytes()));
    std::map<std::string, std::string> reasons;
    Unpacker in(all);
    for (int64_t left = in.Int(); left > 0; --left) {
      const std::string name = in.Text();
      reasons[name] = in.Text();
    }
    RETURN_IF_ERROR(in.Done());
    for (Entrant& e : entrants_) {
      const auto at = reasons.find(absl::StrCat(e.result.trace, "|", Text(e.result.config)));
      if (at == reasons.end()) continue;
      e.result.verdict = Verdict::kQuarantined;
      e.result.reason = at->second;
    }
    return absl::OkStatus();
  }

  std::vector<int> Scouts() const {
    std::set<int> groups;
    for (int v : tried_) groups.insert(entrants_[v].group);
    std::vector<int> scouts;
    for (int v = 0; v < size(); ++v) {
      if (Open(v) && groups.insert(entrants_[v].group).second) scouts.push_back(v);
    }
    return scouts;
  }

  std::vector<int> Followers() {
    const int fastest = race_.Fastest();
    std::map<int, int> scouts;
    for (int v : tried_) scouts.emplace(entrants_[v].group, v);
    std::vector<int> followers;
    for (int v = 0; v < size(); ++v) {
      if (!Open(v)) continue;
      const auto at = scouts.find(entrants_[v].group);
      const VariantResult* scout = at == scouts.end() ? nullptr : &result(at->second);
      const bool ran = scout != nullptr && fastest >= 0 && !Failed(scout->verdict);
      // By the minimum: one slow sample must not rule out a group.
      const double ratio = ran ? Quickest(at->second) / race_.timing(fastest).median_us : 0;
      if (!options_.tries_all && ran && ratio > kWorthRefining) {
        result(v).verdict = Verdict::kPruned;
        result(v).reason =
            absl::StrFormat("not run: schedule's plainest took %.1fx as long", ratio);
      } else {
        followers.push_back(v);
      }
    }
    return followers;
  }

  double Quickest(int v) const {
    const Timing timing = race_.timing(v);
    return timing.samples > 0 ? timing.low_us : step_us_[v];
  }

  enum class Of : uint8_t { kScouts, kAll };

  /// Tries open variants, the most promising first, until that share of the budget is spent.
  absl::Status Explore(Of which, double share) {
    while (true) {
      ASSIGN_OR_RETURN(const std::vector<int> batch,
                       NextBatch(which == Of::kScouts ? Scouts() : Followers(), share));
      if (batch.empty()) return absl::OkStatus();
      RETURN_IF_ERROR(Try(batch));
    }
  }

  absl::StatusOr<std::vector<int>> NextBatch(const std::vector<int>& open, double share) {
    open_ = open.size();
    const bool spent =
        options_.seconds && options_.seconds() - options_.start_s > share * options_.budget_s;
    std::vector<int> chosen;
    if (stop_ == Stop::kNo && !(spent && race_.Fastest() >= 0))
      chosen = forecast_.MostPromising(open, kBatch);
    return FromRank0(chosen);
  }

  bool AnyOpen() const {
    for (int v = 0; v < size(); ++v) {
      if (Open(v)) return true;
    }
    return false;
  }

  /// Collective. Rank 0's numbers, for decisions by its clock or its floating-point library.
  absl::StatusOr<std::vector<int>> FromRank0(const std::vector<int>& mine) {
    Packer out;
    out.Int(static_cast<int64_t>(mine.size()));
    for (int number : mine) out.Int(number);
    ASSIGN_OR_RETURN(const std::string said, exchange_.Broadcast(out.bytes()));
    Unpacker in(said);
    std::vector<int> numbers;
    for (int64_t left = in.Int(); left > 0; --left) numbers.push_back(static_cast<int>(in.Int()));
    RETURN_IF_ERROR(in.Done());
    return numbers;
  }

  bool ShouldStop() const { return Asked() != Stop::kNo; }

  Stop Asked() const {
    if (options_.interrupted && options_.interrupted()) return Stop::kInterrupted;
    // One variant is measured however small the budget.
    if (race_.Fastest() >= 0 && options_.seconds &&
        options_.seconds() - options_.start_s > options_.budget_s)
      return Stop::kBudget;
    return Stop::kNo;
  }

  /// Collective. False once the budget is spent or the user interrupted; then it stays false.
  absl::StatusOr<bool> GoOn() {
    if (stop_ != Stop::kNo) return false;
    ASSIGN_OR_RETURN(const std::vector<int> asked, FromRank0({static_cast<int>(Asked())}));
    stop_ = static_cast<Stop>(asked[0]);
    return stop_ == Stop::kNo;
  }

  std::string StopReason() const {
    return stop_ == Stop::kInterrupted
               ? "interrupted"
               : absl::StrFormat("budget of %.4g s ended", options_.budget_s);
  }

  /// The runner's answer. An error names the variant: a faulty kernel may end all ranks.
  template <class T>
  absl::StatusOr<T> Named(absl::StatusOr<T> answer, absl::string_view doing, int v,
                          absl::string_view how = "") {
    if (answer.ok()) return answer;
    return WithContext(answer.status(), absl::StrCat(doing, " ", Words(result(v)), how));
  }

  absl::Status Try(const std::vector<int>& variants) {
    ASSIGN_OR_RETURN(bool go_on, GoOn());
    if (!go_on || variants.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<std::optional<Failure>> failures,
                     runner_.Compile(variants, [this] { return ShouldStop(); }));
    for (size_t i = 0; i < variants.size(); ++i) {
      const int v = variants[i];
      if (failures[i].has_value()) {
        if (failures[i]->verdict != Verdict::kNotMeasured) Fail(v, *failures[i]);
        continue;
      }
      ASSIGN_OR_RETURN(go_on, GoOn());
      if (!go_on) return absl::OkStatus();
      RETURN_IF_ERROR(Screen(v));
      ++verified_;
      Say(absl::StrCat("checked ", verified_, " of ", verified_ + std::max(open_, i + 1) - i - 1,
                       ": ", result(v).schedule, ": ",
                       result(v).reason.empty() ? Milliseconds(step_us_[v]) : result(v).reason));
    }
    return absl::OkStatus();
  }

  /// Loads, verifies, and takes the first sample.
  absl::Status Screen(int v) {
    tried_.insert(v);
    if (options_.journal != nullptr) options_.journal->Begin(options_.key, result(v));
    ASSIGN_OR_RETURN(const std::optional<Failure> failure, FirstRuns(v));
    if (options_.journal != nullptr) options_.journal->End(options_.key, result(v));
    if (failure.has_value()) {
      Fail(v, *failure);
      return absl::OkStatus();
    }
    TellOfFailures();
    if (result(v).verdict == Verdict::kPruned) {
      runner_.Unload(v);
      loaded_.erase(v);
      return absl::OkStatus();
    }
    race_.Enter(v);
    ASSIGN_OR_RETURN(const std::optional<Failure> later, TakeSample(v));
    if (later.has_value()) Fail(v, *later);
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<Failure>> FirstRuns(int v) {
    ASSIGN_OR_RETURN(std::optional<Failure> failure,
                     Named(runner_.Load(v), "verifying", v, " at a small size"));
    if (failure.has_value()) return failure;
    loaded_.insert(v);
    ASSIGN_OR_RETURN(VariantRunner::Sample first, Named(runner_.Time(v, 0, 1), "timing", v));
    if (first.failure.has_value()) return first.failure;
    step_us_[v] = first.us;
    forecast_.Add(v, first.us);
    if (!options_.tries_all && v != baseline_ && race_.Fastest() >= 0 &&
        first.us > std::max(kHopeless * best_first_us_, kHopelessUs)) {
      ASSIGN_OR_RETURN(failure, LookAgain(v));
      if (failure.has_value() || result(v).verdict == Verdict::kPruned) return failure;
    }
    if (!verifies_leaders_only_) {
      ASSIGN_OR_RETURN(failure, VerifyAtSize(v));
    }
    if (!failure.has_value()) best_first_us_ = std::min(best_first_us_, first.us);
    return failure;
  }

  /// Drops the variant where it takes much longer than the best now, too: the machine may have been
  /// busy while it ran, or idle while the best ran.
  absl::StatusOr<std::optional<Failure>> LookAgain(int v) {
    const int best = race_.Fastest();
    ASSIGN_OR_RETURN(const VariantRunner::Sample best_now,
                     Named(runner_.Time(best, 0, 1), "timing", best));
    ASSIGN_OR_RETURN(const VariantRunner::Sample second, Named(runner_.Time(v, 0, 1), "timing", v));
    if (second.failure.has_value()) return second.failure;
    if (best_now.failure.has_value()) return std::nullopt;  // the next round finds it
    const double least = std::min(step_us_[v], second.us);
    step_us_[v] = least;
    forecast_.Add(v, least);
    if (least > std::max(kHopeless * best_now.us, kHopelessUs)) {
      result(v).verdict = Verdict::kPruned;
      result(v).reason = absl::StrFormat("steps %.1fx as long as the best's", least / best_now.us);
      result(v).timing = {least, least, std::max(least, second.us), 2};
    }
    return std::nullopt;
  }

  absl::StatusOr<std::optional<Failure>> VerifyAtSize(int v) {
    const double begin = options_.seconds ? options_.seconds() : 0;
    ASSIGN_OR_RETURN(const std::optional<Failure> failure,
                     Named(runner_.Verify(v), "verifying", v));
    if (options_.seconds) verify_s_ = options_.seconds() - begin;
    if (!failure.has_value()) verified_at_size_.insert(v);
    return failure;
  }

  absl::Status DecideWhenToVerify() {
    ASSIGN_OR_RETURN(
        const std::vector<int> is_long,
        FromRank0({!options_.tries_all && verify_s_ > kVerifyShare * options_.budget_s}));
    verifies_leaders_only_ = is_long[0] != 0;
    return absl::OkStatus();
  }

  /// Verifies the variant that `first` names at the program's size, unless that was done; another
  /// one where it fails.
  absl::Status VerifyFirst(absl::FunctionRef<int()> first) {
    for (int v = first(); v >= 0 && verified_at_size_.count(v) == 0; v = first()) {
      ASSIGN_OR_RETURN(const std::optional<Failure> failure, VerifyAtSize(v));
      if (failure.has_value()) Fail(v, *failure);
    }
    return absl::OkStatus();
  }

  /// Runs at most `most` rounds within that share of the budget. Drops variants that cannot win,
  /// and the slowest where time is too short for all.
  absl::Status Rounds(int most, double share) {
    for (int round = 0; round < most && !race_.Finished(); ++round) {
      RETURN_IF_ERROR(Thin(std::min(most, options_.race.samples) - round, share));
      for (int v : race_.NextRound()) {
        ASSIGN_OR_RETURN(const bool go_on, GoOn());
        if (!go_on) return absl::OkStatus();
        ASSIGN_OR_RETURN(const std::optional<Failure> failure, TakeSample(v));
        if (failure.has_value()) Fail(v, *failure);
      }
      // No variant is compared with one that gives wrong answers.
      RETURN_IF_ERROR(VerifyFirst([this] { return race_.Fastest(); }));
      Prune(race_.Drop());
      const int fastest = race_.Fastest();
      if (fastest < 0) return absl::OkStatus();
      Say(absl::StrFormat("measured round %d: best %s, %s", race_.timing(fastest).samples,
                          Milliseconds(race_.timing(fastest).median_us), result(fastest).schedule));
    }
    return absl::OkStatus();
  }

  absl::Status Thin(int rounds, double share) {
    std::vector<double> round_us;  // per running variant: time of one sample
    for (int v = 0; v < size(); ++v) {
      if (race_.running(v)) round_us.push_back(std::max(step_us_[v], kSampleUs));
    }
    std::sort(round_us.begin(), round_us.end());
    const double left_us =
        options_.seconds
            ? 1e6 * (share * options_.budget_s - (options_.seconds() - options_.start_s))
            : std::numeric_limits<double>::infinity();
    size_t keep = 0;
    for (double sum = 0; keep < round_us.size(); ++keep) {
      sum += round_us[keep] * std::max(rounds, 1);
      if (sum > left_us && static_cast<int>(keep) >= options_.race.finalists) break;
    }
    ASSIGN_OR_RETURN(const std::vector<int> most, FromRank0({static_cast<int>(keep)}));
    Prune(race_.KeepQuickest(most[0]));
    return absl::OkStatus();
  }

  void Prune(const std::vector<Race::Dropped>& dropped) {
    for (const auto& [v, reason] : dropped) {
      result(v).verdict = Verdict::kPruned;
      result(v).reason = reason;
      runner_.Unload(v);
      loaded_.erase(v);
    }
  }

  absl::StatusOr<std::optional<Failure>> TakeSample(int v) {
    for (int attempt = 0;; ++attempt) {
      const int steps = static_cast<int>(
          std::clamp(std::ceil(kSampleUs / std::max(step_us_[v], 1e-3)), 1.0, double{kMostSteps}));
      const int warm_up = step_us_[v] < kWarmUpBelowUs ? std::max(1, steps / 10) : 0;
      ASSIGN_OR_RETURN(const VariantRunner::Sample sample,
                       Named(runner_.Time(v, warm_up, steps), "timing", v));
      if (sample.failure.has_value()) return sample.failure;
      step_us_[v] = sample.us;
      forecast_.Add(v, sample.us);
      // Where the estimate was too long, of a cold or delayed step, the sample is too short to
      // count.
      if (sample.us * steps < kSampleUs / 2 && attempt < kAttempts) continue;
      race_.Add(v, sample.us);
      return std::nullopt;
    }
  }

  /// Rules the variant out; where the failure may pass, at the second time only.
  void Fail(int v, const Failure& failure) {
    race_.Leave(v);
    if (loaded_.erase(v) != 0) runner_.Unload(v);
    if (MayPass(failure.verdict) && tried_again_.insert(v).second) {
      tried_.erase(v);  // open again
      return;
    }
    tried_.insert(v);
    result(v).verdict = failure.verdict;
    result(v).reason = failure.reason;
    untold_.push_back(v);
  }

  /// Tells the journal of the failures so far, since a variant has run after them: what fails all
  /// variants, such as a stopped rank or a broken compiler, is not their fault.
  void TellOfFailures() {
    for (int v : untold_) {
      if (options_.journal != nullptr) options_.journal->Fail(options_.key, result(v));
    }
    untold_.clear();
  }

  /// Verifies the winner once more on fresh data, after all the timing; after an interrupt, takes
  /// one that was verified before.
  absl::Status VerifyWinner() {
    for (int winner = race_.Winner(); winner >= 0; winner = race_.Winner()) {
      if (stop_ == Stop::kInterrupted) {
        if (verified_at_size_.contains(winner)) return absl::OkStatus();
        race_.Leave(winner);
        continue;
      }
      ASSIGN_OR_RETURN(const std::optional<Failure> failure,
                       Named(runner_.Verify(winner), "verifying", winner));
      if (!failure.has_value()) {
        TellOfFailures();
        return absl::OkStatus();
      }
      Fail(winner, *failure);
    }
    if (stop_ == Stop::kInterrupted)
      return absl::CancelledError("tuning was interrupted before anything was measured");
    for (const Entrant& e : entrants_) {
      if (e.result.reason.empty()) continue;
      return absl::InternalError(absl::StrCat(
          "none of the ", size(), " variants runs and gives the right answer; the first, ",
          Words(e.result), ": ", Name(e.result.verdict), ": ", e.result.reason));
    }
    return absl::InternalError("nothing was measured");
  }

  absl::StatusOr<Tuned> Finish() {
    RETURN_IF_ERROR(VerifyWinner());
    Tuned tuned;
    tuned.best = race_.Winner();
    // Of rank 0, so that all ranks hold the same record.
    ASSIGN_OR_RETURN(const std::string record, exchange_.Broadcast(Encode(MakeRecord(tuned.best))));
    ASSIGN_OR_RETURN(tuned.record, DecodeRecord(record));
    for (const Entrant& e : entrants_) tuned.variants.push_back(e.result);
    for (int v : std::set<int>(loaded_)) {
      if (v != tuned.best) runner_.Unload(v);
    }
    if (options_.journal != nullptr) options_.journal->Store(tuned.record, tuned.variants);
    return tuned;
  }

  TuningRecord MakeRecord(int winner) {
    const bool saw_all = Scouts().empty();
    FillTimings();
    // Where the baseline failed, the simplest variant that ran replaces it.
    int baseline = baseline_;
    for (int v = 0; v < size() && result(baseline).timing.samples == 0; ++v) {
      if (race_.running(v) && result(v).timing.samples > 0) baseline = v;
    }
    TuningRecord record;
    record.key = options_.key;
    record.key_text = options_.key_text;
    record.best = result(winner);
    record.baseline = result(baseline);
    if (const int second = race_.RunnerUp(winner); second >= 0)
      record.runner_up = Words(result(second));
    for (const Entrant& e : entrants_) {
      if (e.result.bytes > 0 &&
          (record.necessary_bytes == 0 || e.result.bytes < record.necessary_bytes)) {
        record.necessary_bytes = e.result.bytes;
      }
    }
    record.variants = size();
    const bool left_some = absl::c_any_of(entrants_, [](const Entrant& e) {
      return e.result.verdict == Verdict::kTimedOut || e.result.verdict == Verdict::kNotLoaded;
    });
    record.complete = !options_.partial && !left_some &&
                      (stop_ == Stop::kNo || (stop_ == Stop::kBudget && saw_all));
    record.created_s = absl::ToUnixSeconds(absl::Now());
    record.trust = {runner_.TrustIn(winner)};
    return record;
  }

  void FillTimings() {
    for (int v = 0; v < size(); ++v) {
      VariantResult& r = result(v);
      if (const Timing timing = race_.timing(v); timing.samples > 0) r.timing = timing;
      if (r.verdict != Verdict::kNotMeasured) continue;
      if (stop_ == Stop::kNo && race_.running(v)) {
        r.verdict = Verdict::kMeasured;
      } else if (stop_ != Stop::kNo) {
        r.reason = StopReason();
      }
    }
  }

  /// Stores the best variant so far, for the case that the job is killed.
  absl::Status StoreBestSoFar() {
    RETURN_IF_ERROR(VerifyFirst([this] { return race_.Winner(); }));
    if (race_.Winner() >= 0) TellOfFailures();
    const int winner = race_.Winner();
    if (options_.journal == nullptr || winner < 0) return absl::OkStatus();
    const std::vector<Entrant> before = entrants_;
    TuningRecord record = MakeRecord(winner);
    record.complete = false;
    std::vector<VariantResult> variants;
    for (const Entrant& e : entrants_) variants.push_back(e.result);
    options_.journal->Store(record, variants);
    entrants_ = before;
    return absl::OkStatus();
  }

  std::vector<Entrant> entrants_;
  int baseline_;
  VariantRunner& runner_;
  Exchange& exchange_;
  const TunerOptions& options_;
  Race race_;
  Forecast forecast_;
  std::vector<double> step_us_;  // the latest time of a step; 0: none yet
  Stop stop_ = Stop::kNo;
  std::set<int> tried_, loaded_;
  std::set<int> tried_again_;  // variants whose first failure may have passed
  std::vector<int> untold_;    // variants that failed, of which the journal does not know
  double best_first_us_ = std::numeric_limits<double>::infinity();
  int verified_ = 0;
  double verify_s_ = 0;                 // duration of the latest Verify, on rank 0
  bool verifies_leaders_only_ = false;  // at the program's size
  std::set<int> verified_at_size_;
  size_t open_ = 0;  // candidates at the latest forecast, on rank 0
};

}  // namespace

absl::StatusOr<Tuned> Tune(std::vector<Entrant> entrants, int baseline, VariantRunner& runner,
                           Exchange& exchange, const TunerOptions& options) {
  return Tuning(std::move(entrants), baseline, runner, exchange, options).Run();
}

}  // namespace coconet
