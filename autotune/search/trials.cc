#include "autotune/search/trials.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr double kWarmUpBelowUs = 10000;  // longer steps need no warm-up
/// Where steps are long, a first step that takes so many times as long as one of the best is a
/// sample of the duel.
constexpr double kFarBehind = 2;
constexpr int kMostSteps = 1 << 20;
constexpr int kAttempts = 4;  // to find the number of steps per sample
/// Where Verify takes more than this share of the budget, only leaders are verified.
constexpr double kVerifyShare = 0.01;
/// Length of a sample. In shorter ones, the clock's resolution and the ranks' unequal starts show.
constexpr double kSampleUs = 1000;
/// A sample without a core is repeated so often, while all take less than so long.
constexpr int kMostRepeats = 16;
constexpr double kRepeatUs = 20000;
/// Where other programs take cores away, a duel goes on until so many pairs are clean, up to so
/// many times the usual pairs.
constexpr int kCleanPairs = 2, kMostPairs = 3;
/// A sample is quiet where no other program had a core that a rank was ready for, for longer than
/// kDisturbanceUs, within kNearUs before it. Programs that share a core take turns of some
/// milliseconds: a sample between two of these loses nothing, and finds the caches of another.
constexpr double kDisturbanceUs = 500, kNearUs = 12000;
/// Memory is moved up to so many times, each time if that takes at most this share of the time
/// left.
constexpr int kMostMoves = 80;
constexpr double kMoveShare = 0.1;
/// A variant that was dropped without a clean round is tried again, unless it took so many times as
/// long as the best.
constexpr double kMostDoubtful = 4;
/// Samples of the first variant, which show how noisy the machine is.
constexpr int kFirstSamples = 4;
constexpr double kFirstShare = 0.1;  // of the budget, at which they end

}  // namespace

Trials::Trials(std::vector<Entrant> entrants, int baseline, VariantRunner& runner,
               Exchange& exchange, TimeBudget& budget, const TunerOptions& options)
    : entrants_(std::move(entrants)),
      baseline_(baseline),
      runner_(runner),
      exchange_(exchange),
      budget_(budget),
      options_(options),
      race_(static_cast<int>(entrants_.size()), baseline, options.seed, options.race),
      step_us_(entrants_.size(), 0) {}

bool Trials::IsUntried(int v) const {
  return result(v).verdict == Verdict::kNotMeasured && result(v).reason.empty() &&
         !tried_.contains(v);
}

template <class T>
absl::StatusOr<T> Trials::Named(absl::StatusOr<T> answer, absl::string_view doing, int v,
                                absl::string_view how) const {
  if (answer.ok()) return answer;
  return WithContext(answer.status(), absl::StrCat(doing, " ", Words(result(v)), how));
}

absl::Status Trials::TryFirst(int v) {
  return Try({v}, {}, [](int) { return absl::OkStatus(); });
}

absl::Status Trials::Try(const std::vector<int>& variants, const std::vector<int>& ahead,
                         absl::FunctionRef<absl::Status(int)> tried) {
  ASSIGN_OR_RETURN(bool go_on, budget_.GoOn());
  if (!go_on || variants.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const std::vector<std::optional<Failure>> failures,
      runner_.Compile(variants, [this] { return budget_.Asked() != TimeBudget::Stop::kNo; }));
  if (!ahead.empty()) RETURN_IF_ERROR(runner_.CompileAhead(ahead));
  for (size_t i = 0; i < variants.size(); ++i) {
    const int v = variants[i];
    if (VariantRunner::Facts facts = runner_.FactsOf(v); !facts.protocol.empty()) {
      result(v).protocol = std::move(facts.protocol);
      result(v).bytes = facts.bytes;
    }
    if (failures[i].has_value()) {
      if (failures[i]->verdict == Verdict::kNotMeasured) continue;
      Fail(v, *failures[i]);
    } else {
      ASSIGN_OR_RETURN(go_on, budget_.GoOn());
      if (!go_on) return absl::OkStatus();
      RETURN_IF_ERROR(TryOne(v, race_.Fastest() < 0));
    }
    RETURN_IF_ERROR(tried(v));
  }
  return absl::OkStatus();
}

absl::Status Trials::TryOne(int v, bool first) {
  tried_.insert(v);
  if (options_.journal != nullptr) options_.journal->Begin(options_.key, result(v));
  ASSIGN_OR_RETURN(const std::optional<Failure> failure, FirstRuns(v, first));
  if (options_.journal != nullptr) options_.journal->End(options_.key, result(v));
  if (failure.has_value()) {
    Fail(v, *failure);
    return absl::OkStatus();
  }
  TellOfFailures();
  if (result(v).verdict == Verdict::kPruned) {
    Unload(v);
    return absl::OkStatus();
  }
  race_.Enter(v);
  budget_.HasResult();
  // No variant is compared with one that gives wrong answers.
  return VerifyFirst([this] { return race_.Fastest(); });
}

absl::StatusOr<std::optional<Failure>> Trials::FirstRuns(int v, bool first) {
  ASSIGN_OR_RETURN(std::optional<Failure> failure,
                   Named(runner_.Load(v), "verifying", v, " at a small size"));
  if (failure.has_value()) return failure;
  loaded_.insert(v);
  ASSIGN_OR_RETURN(VariantRunner::Sample step, Named(runner_.Time(v, 0, 1), "timing", v));
  if (step.failure.has_value()) return step.failure;
  step_us_[v] = step.us;
  const bool is_short = options_.race.samples < kFirstSamples;
  if (first || options_.tries_all || v == baseline_) {
    for (int i = 0; i < (is_short || options_.tries_all ? 1 : kFirstSamples); ++i) {
      if (i > 0) {
        ASSIGN_OR_RETURN(const int over,
                         FromRank0(exchange_, budget_.LeftSeconds(kFirstShare) < 0 ||
                                                  budget_.Asked() != TimeBudget::Stop::kNo));
        if (over != 0) break;
      }
      race_.BeginRound();
      ASSIGN_OR_RETURN(failure, TakeSample(v));
      if (failure.has_value()) return failure;
    }
  } else {
    ASSIGN_OR_RETURN(failure, Duel(v, step));
    if (failure.has_value() || result(v).verdict == Verdict::kPruned) return failure;
  }
  if (!verifies_leaders_only_) {
    ASSIGN_OR_RETURN(failure, VerifyAtSize(v));
  }
  return failure;
}

absl::StatusOr<std::optional<Failure>> Trials::Duel(int v, const VariantRunner::Sample& first) {
  ASSIGN_OR_RETURN(const int best, FromRank0(exchange_, race_.Fastest()));
  const bool is_far_behind = runner_.starts_warm() && BestUs() >= kWarmUpBelowUs &&
                             first.us >= kFarBehind * BestUs() && race_.IsClean(first.lost);
  ASSIGN_OR_RETURN(int has_sample, FromRank0(exchange_, is_far_behind));
  for (int pair = 0; pair < kMostPairs * options_.pairs; ++pair) {
    if (pair >= options_.pairs && race_.CleanRounds(v, best) >= kCleanPairs) break;
    race_.BeginRound();
    for (int turn = 0; turn < 2; ++turn) {
      const bool is_mine = turn == pair % 2;
      if (is_mine && has_sample != 0) {
        race_.Add(v, {first.us, first.lost, first.lost_all});
        has_sample = 0;
        continue;
      }
      ASSIGN_OR_RETURN(std::optional<Failure> failure, TakeSample(is_mine ? v : best));
      if (!failure.has_value()) continue;
      if (is_mine) return failure;
      Fail(best, *failure);
      return std::nullopt;  // rounds go on without it
    }
    const bool is_slower = options_.drops && race_.IsSlower(v);
    ASSIGN_OR_RETURN(const std::vector<int> drop_and_stop,
                     FromRank0(exchange_, {is_slower, budget_.Asked() != TimeBudget::Stop::kNo}));
    if (drop_and_stop[0] == 0 && drop_and_stop[1] != 0) return std::nullopt;
    if (drop_and_stop[0] == 0) continue;
    result(v).verdict = Verdict::kPruned;
    if (race_.CleanRounds(v, best) == 0) doubtful_.insert(v);
    return std::nullopt;
  }
  return std::nullopt;
}

bool Trials::IsDoubtful(int v) const {
  const int fastest = race_.Fastest();
  return doubtful_.contains(v) && fastest >= 0 &&
         race_.Compare(v, fastest).log < std::log(kMostDoubtful);
}

absl::Status Trials::Reconsider() {
  std::vector<int> again;
  for (int v : doubtful_) {
    if (IsDoubtful(v) && result(v).verdict == Verdict::kPruned && !reconsidered_.contains(v))
      again.push_back(v);
  }
  ASSIGN_OR_RETURN(again, FromRank0(exchange_, again));
  for (int v : again) {
    reconsidered_.insert(v);
    doubtful_.erase(v);
    tried_.erase(v);
    result(v).verdict = Verdict::kNotMeasured;
    result(v).reason.clear();
  }
  return absl::OkStatus();
}

int Trials::Doubtful() const {
  return static_cast<int>(absl::c_count_if(doubtful_, [&](int v) { return IsDoubtful(v); }));
}

absl::StatusOr<std::optional<Failure>> Trials::VerifyAtSize(int v) {
  const double begin = budget_.Now();
  ASSIGN_OR_RETURN(const std::optional<Failure> failure, Named(runner_.Verify(v), "verifying", v));
  verify_s_ = budget_.Now() - begin;
  if (!failure.has_value()) verified_at_size_.insert(v);
  return failure;
}

absl::Status Trials::DecideWhenToVerify() {
  ASSIGN_OR_RETURN(
      const int is_long,
      FromRank0(exchange_, !options_.tries_all && verify_s_ > kVerifyShare * options_.budget_s));
  verifies_leaders_only_ = is_long != 0;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Failure>> Trials::TakeSample(int v) {
  std::optional<VariantRunner::Sample> best;  // disturbed least
  bool is_quiet = false;
  double spent_us = 0;
  for (int attempt = 0;; ++attempt) {
    const int steps = static_cast<int>(
        std::clamp(std::ceil(kSampleUs / std::max(step_us_[v], 1e-3)), 1.0, double{kMostSteps}));
    // What ran before has left other data in the caches.
    const int warm_up = step_us_[v] < kWarmUpBelowUs ? steps : 0;
    ASSIGN_OR_RETURN(const VariantRunner::Sample sample,
                     Named(runner_.Time(v, warm_up, steps), "timing", v));
    if (sample.failure.has_value()) return sample.failure;
    step_us_[v] = sample.us;
    spent_us += sample.us * steps;
    const bool quiet = IsQuiet(sample, sample.us * steps);
    // Where the estimate was too long, of a cold or delayed step, the sample is too short to
    // count.
    if (sample.us * steps < kSampleUs / 2 && attempt < kAttempts) continue;
    if (!best.has_value() || std::pair(!quiet, sample.lost) < std::pair(!is_quiet, best->lost)) {
      best = sample;
      is_quiet = quiet;
    }
    const bool is_clean = is_quiet && race_.IsClean(best->lost);
    if (!is_clean && attempt < kMostRepeats && spent_us < kRepeatUs) continue;
    race_.Add(v, {best->us, best->lost, best->lost_all, is_quiet});
    return std::nullopt;
  }
}

bool Trials::IsQuiet(const VariantRunner::Sample& sample, double us) {
  if (!options_.settles) return true;
  // In a longer gap variants are compiled and verified.
  const bool before = sample.gap_us < 2 * kNearUs && sample.lost_before_us > kDisturbanceUs;
  quiet_us_ = before ? 0 : quiet_us_ + sample.gap_us;
  if ((before || !race_.IsClean(sample.lost)) && sample.gap_us < kNearUs) race_.Disturb();
  const bool quiet = quiet_us_ >= kNearUs;
  quiet_us_ = race_.IsClean(sample.lost) ? quiet_us_ + us : 0;
  return quiet;
}

absl::StatusOr<bool> Trials::Round() {
  ASSIGN_OR_RETURN(const double meeting_us, runner_.MeetingUs());
  race_.SetMeeting(meeting_us);
  for (int v : race_.NextRound()) {
    ASSIGN_OR_RETURN(const bool go_on, budget_.GoOn());
    if (!go_on) return false;
    ASSIGN_OR_RETURN(const std::optional<Failure> failure, TakeSample(v));
    if (failure.has_value()) Fail(v, *failure);
  }
  // No variant is compared with one that gives wrong answers.
  RETURN_IF_ERROR(VerifyFirst([this] { return race_.Fastest(); }));
  if (options_.drops) RETURN_IF_ERROR(Prune(race_.ToDrop()));
  return true;
}

absl::StatusOr<bool> Trials::Pair(int v, int other) {
  ASSIGN_OR_RETURN(const double meeting_us, runner_.MeetingUs());
  race_.SetMeeting(meeting_us);
  race_.BeginRound();
  const bool first = pairs_++ % 2 == 0;
  for (int runner : {first ? v : other, first ? other : v}) {
    ASSIGN_OR_RETURN(const bool go_on, budget_.GoOn());
    if (!go_on) return false;
    ASSIGN_OR_RETURN(const std::optional<Failure> failure, TakeSample(runner));
    if (!failure.has_value()) continue;
    Fail(runner, *failure);
    return false;
  }
  return true;
}

absl::StatusOr<bool> Trials::MoveMemory() {
  ASSIGN_OR_RETURN(const int too_long,
                   FromRank0(exchange_, move_s_ > kMoveShare * budget_.LeftSeconds()));
  if (moves_ >= kMostMoves || too_long != 0) return false;
  const double begin = budget_.Now();
  ASSIGN_OR_RETURN(const bool moved, runner_.MoveMemory());
  move_s_ = budget_.Now() - begin;
  moves_ = moved ? moves_ + 1 : kMostMoves;
  if (moved) race_.ChangeMemory();
  return moved;
}

absl::StatusOr<bool> Trials::IsDecided() const {
  ASSIGN_OR_RETURN(const int finished, FromRank0(exchange_, race_.Finished()));
  return finished != 0;
}

absl::Status Trials::KeepQuickest(int most) { return Prune(race_.AllBut(most)); }

absl::Status Trials::Prune(std::vector<Race::Dropped> dropped) {
  std::vector<int> numbers;
  for (const Race::Dropped& d : dropped) numbers.push_back(d.runner);
  ASSIGN_OR_RETURN(const std::vector<int> agreed, FromRank0(exchange_, numbers));
  for (size_t i = 0; i < agreed.size(); ++i) {
    const int v = agreed[i];
    race_.Leave(v);
    result(v).verdict = Verdict::kPruned;
    // Reasons are of rank 0's record.
    result(v).reason = i < dropped.size() ? std::move(dropped[i].reason) : "";
    Unload(v);
  }
  return absl::OkStatus();
}

absl::Status Trials::VerifyFirst(absl::FunctionRef<int()> first) {
  while (true) {
    ASSIGN_OR_RETURN(const int v, FromRank0(exchange_, first()));
    if (v < 0 || verified_at_size_.contains(v)) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::optional<Failure> failure, VerifyAtSize(v));
    if (failure.has_value()) Fail(v, *failure);
  }
}

absl::StatusOr<int> Trials::VerifiedWinner() {
  RETURN_IF_ERROR(VerifyFirst([this] { return race_.Winner(); }));
  ASSIGN_OR_RETURN(const int winner, FromRank0(exchange_, race_.Winner()));
  if (winner >= 0) TellOfFailures();
  return winner;
}

absl::StatusOr<int> Trials::FinalWinner() {
  while (true) {
    ASSIGN_OR_RETURN(const int winner, FromRank0(exchange_, race_.Winner()));
    // Where nothing ran after its verification, there is nothing more to find.
    const bool only = tried_.size() == 1 && verified_at_size_.contains(winner);
    if (winner < 0 || only) return winner;
    if (budget_.stop() == TimeBudget::Stop::kInterrupted) {
      if (verified_at_size_.contains(winner)) return winner;
      race_.Leave(winner);
      continue;
    }
    ASSIGN_OR_RETURN(const std::optional<Failure> failure,
                     Named(runner_.Verify(winner), "verifying", winner));
    if (!failure.has_value()) {
      TellOfFailures();
      return winner;
    }
    Fail(winner, *failure);
  }
}

void Trials::Fail(int v, const Failure& failure) {
  race_.Leave(v);
  if (loaded_.contains(v)) Unload(v);
  if (MayPass(failure.verdict) && tried_again_.insert(v).second) {
    tried_.erase(v);  // untried again
    return;
  }
  tried_.insert(v);
  result(v).verdict = failure.verdict;
  result(v).reason = failure.reason;
  untold_.push_back(v);
}

void Trials::TellOfFailures() {
  for (int v : untold_) {
    if (options_.journal != nullptr) options_.journal->Fail(options_.key, result(v));
  }
  untold_.clear();
}

void Trials::Unload(int v) {
  loaded_.erase(v);
  runner_.Unload(v);
}

void Trials::UnloadAllBut(int v) {
  for (int other : std::set<int>(loaded_)) {
    if (other != v) Unload(other);
  }
}

double Trials::BestUs() const {
  const int fastest = race_.Fastest();
  return fastest < 0 ? std::numeric_limits<double>::infinity() : race_.timing(fastest).median_us;
}

std::vector<double> Trials::RoundUs() const {
  std::vector<double> round_us;
  for (int v = 0; v < size(); ++v) {
    if (race_.running(v)) round_us.push_back(std::max(step_us_[v], kSampleUs));
  }
  std::sort(round_us.begin(), round_us.end());
  return round_us;
}

}  // namespace coconet
