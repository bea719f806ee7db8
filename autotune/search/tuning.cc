#include "autotune/search/tuning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "autotune/store/process_identity.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr double kWarmUpBelowUs = 10000;  // longer steps need no warm-up
constexpr int kMostSteps = 1 << 20;
constexpr int kAttempts = 4;  // to find the number of steps per sample
/// A variant is dropped before it is verified at the program's size when its first step takes
/// kHopeless times the best's, and more than kHopelessUs: shorter steps are too noisy to tell.
constexpr double kHopeless = 3, kHopelessUs = 20000;
constexpr int kRoughRounds = 4;
/// Where Verify takes more than this share of the budget, only leaders are verified.
constexpr double kVerifyShare = 0.01;
/// Shares of the budget at which phases end: plainest variants of groups, rough rounds, other
/// numbers of the best groups. The last rounds take the rest.
constexpr double kLookShare = 0.5, kRoughShare = 0.6, kTryShare = 0.75;

std::string Milliseconds(double us) { return absl::StrFormat("%.4g ms", us / 1000); }

std::vector<std::vector<int>> FeaturesOf(const std::vector<Entrant>& entrants) {
  std::vector<std::vector<int>> features;
  for (const Entrant& e : entrants) features.push_back(e.features);
  return features;
}

}  // namespace

Tuning::Tuning(std::vector<Entrant> entrants, int baseline, VariantRunner& runner,
               Exchange& exchange, const TunerOptions& options)
    : entrants_(std::move(entrants)),
      baseline_(baseline),
      runner_(runner),
      exchange_(exchange),
      options_(options),
      race_(static_cast<int>(entrants_.size()), baseline, options.seed, options.race),
      forecast_(FeaturesOf(entrants_)),
      step_us_(entrants_.size(), 0) {}

absl::StatusOr<Tuned> Tuning::Run() {
  RETURN_IF_ERROR(MarkEarlierFailures());
  // The baseline first: once it is measured, tuning may end at any time.
  if (Open(baseline_)) RETURN_IF_ERROR(Try({baseline_}));
  RETURN_IF_ERROR(DecideWhenToVerify());
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
  return Finish();
}

/// Rules out variants that failed under this key before.
absl::Status Tuning::MarkEarlierFailures() {
  std::vector<VariantResult> failures;
  if (options_.journal != nullptr) failures = options_.journal->Failures(options_.key);
  Packer known;
  known.Int(static_cast<int64_t>(failures.size()));
  for (const VariantResult& v : failures) {
    const bool quarantined = v.verdict == Verdict::kQuarantined;
    known.Text(absl::StrCat(v.trace, "|", Text(v.config)));
    known.Text(quarantined ? v.reason
                           : absl::StrCat(Name(v.verdict), " in an earlier run: ", v.reason));
  }
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

Tuning::Stop Tuning::Asked() const {
  if (options_.interrupted && options_.interrupted()) return Stop::kInterrupted;
  // One variant is measured however small the budget.
  if (race_.Fastest() >= 0 && options_.seconds &&
      options_.seconds() - options_.start_s > options_.budget_s)
    return Stop::kBudget;
  return Stop::kNo;
}

absl::StatusOr<bool> Tuning::GoOn() {
  if (stop_ != Stop::kNo) return false;
  ASSIGN_OR_RETURN(const std::vector<int> asked, FromRank0({static_cast<int>(Asked())}));
  stop_ = static_cast<Stop>(asked[0]);
  return stop_ == Stop::kNo;
}

std::string Tuning::StopReason() const {
  return stop_ == Stop::kInterrupted
             ? "interrupted"
             : absl::StrFormat("the budget of %.4g s ended", options_.budget_s);
}

absl::Status Tuning::Try(const std::vector<int>& variants) {
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

absl::StatusOr<std::optional<Failure>> Tuning::Load(int v) {
  absl::StatusOr<std::optional<Failure>> failure = runner_.Load(v);
  if (!failure.ok())
    return WithContext(failure.status(),
                       absl::StrCat("verifying ", Words(result(v)), " at a small size"));
  return failure;
}

absl::StatusOr<std::optional<Failure>> Tuning::Verify(int v) {
  absl::StatusOr<std::optional<Failure>> failure = runner_.Verify(v);
  if (!failure.ok())
    return WithContext(failure.status(), absl::StrCat("verifying ", Words(result(v))));
  return failure;
}

absl::StatusOr<VariantRunner::Sample> Tuning::Time(int v, int warm_up, int steps) {
  absl::StatusOr<VariantRunner::Sample> sample = runner_.Time(v, warm_up, steps);
  if (!sample.ok()) return WithContext(sample.status(), absl::StrCat("timing ", Words(result(v))));
  return sample;
}

absl::Status Tuning::Screen(int v) {
  tried_.insert(v);
  if (options_.journal != nullptr) options_.journal->Begin(options_.key, result(v));
  ASSIGN_OR_RETURN(const std::optional<Failure> failure, FirstRuns(v));
  if (failure.has_value()) {
    Fail(v, *failure);
  } else if (result(v).verdict == Verdict::kPruned) {
    runner_.Unload(v);
    loaded_.erase(v);
  } else {
    race_.Enter(v);
  }
  if (options_.journal != nullptr) options_.journal->End(options_.key, result(v));
  if (!race_.running(v)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<Failure> later, TakeSample(v));
  if (later.has_value()) Fail(v, *later);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Failure>> Tuning::FirstRuns(int v) {
  ASSIGN_OR_RETURN(std::optional<Failure> failure, Load(v));
  if (failure.has_value()) return failure;
  loaded_.insert(v);
  ASSIGN_OR_RETURN(VariantRunner::Sample first, Time(v, 0, 1));
  if (first.failure.has_value()) return first.failure;
  step_us_[v] = first.us;
  forecast_.Add(v, first.us);
  if (!options_.tries_all && v != baseline_ &&
      first.us > std::max(kHopeless * best_first_us_, kHopelessUs)) {
    result(v).verdict = Verdict::kPruned;
    result(v).reason = absl::StrFormat("%.1fx the best's first step", first.us / best_first_us_);
    result(v).timing = {first.us, first.us, first.us, 1};
    return std::nullopt;
  }
  if (!verifies_leaders_only_) {
    ASSIGN_OR_RETURN(failure, VerifyAtSize(v));
  }
  if (!failure.has_value()) best_first_us_ = std::min(best_first_us_, first.us);
  return failure;
}

absl::StatusOr<std::optional<Failure>> Tuning::VerifyAtSize(int v) {
  const double begin = options_.seconds ? options_.seconds() : 0;
  ASSIGN_OR_RETURN(const std::optional<Failure> failure, Verify(v));
  if (options_.seconds) verify_s_ = options_.seconds() - begin;
  if (!failure.has_value()) verified_at_size_.insert(v);
  return failure;
}

absl::Status Tuning::DecideWhenToVerify() {
  ASSIGN_OR_RETURN(
      const std::vector<int> is_long,
      FromRank0({!options_.tries_all && verify_s_ > kVerifyShare * options_.budget_s}));
  verifies_leaders_only_ = is_long[0] != 0;
  return absl::OkStatus();
}

/// Verifies the leader, so that no variant is compared with one that gives wrong answers.
absl::Status Tuning::VerifyLeader() {
  for (int leader = race_.Fastest(); leader >= 0 && verified_at_size_.count(leader) == 0;
       leader = race_.Fastest()) {
    ASSIGN_OR_RETURN(const std::optional<Failure> failure, VerifyAtSize(leader));
    if (failure.has_value()) Fail(leader, *failure);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Failure>> Tuning::TakeSample(int v) {
  for (int attempt = 0;; ++attempt) {
    const int steps = static_cast<int>(
        std::clamp(std::ceil(kSampleUs / std::max(step_us_[v], 1e-3)), 1.0, double{kMostSteps}));
    const int warm_up = step_us_[v] < kWarmUpBelowUs ? std::max(1, steps / 10) : 0;
    ASSIGN_OR_RETURN(const VariantRunner::Sample sample, Time(v, warm_up, steps));
    if (sample.failure.has_value()) return sample.failure;
    step_us_[v] = sample.us;
    forecast_.Add(v, sample.us);
    // Where the estimate was too long, of a cold or delayed step, the sample is too short to count.
    if (sample.us * steps < kSampleUs / 2 && attempt < kAttempts) continue;
    race_.Add(v, sample.us);
    return std::nullopt;
  }
}

absl::Status Tuning::Rounds(int most, double share) {
  for (int round = 0; round < most && !race_.Finished(); ++round) {
    RETURN_IF_ERROR(Thin(std::min(most, options_.race.samples) - round, share));
    for (int v : race_.NextRound()) {
      ASSIGN_OR_RETURN(const bool go_on, GoOn());
      if (!go_on) return absl::OkStatus();
      ASSIGN_OR_RETURN(const std::optional<Failure> failure, TakeSample(v));
      if (failure.has_value()) Fail(v, *failure);
    }
    RETURN_IF_ERROR(VerifyLeader());
    Prune(race_.Drop());
    const int fastest = race_.Fastest();
    if (fastest < 0) return absl::OkStatus();
    Say(absl::StrFormat("measured round %d: best %s, %s", race_.timing(fastest).samples,
                        Milliseconds(race_.timing(fastest).median_us), result(fastest).schedule));
  }
  return absl::OkStatus();
}

void Tuning::Prune(const std::vector<Race::Dropped>& dropped) {
  for (const auto& [v, reason] : dropped) {
    result(v).verdict = Verdict::kPruned;
    result(v).reason = reason;
    runner_.Unload(v);
    loaded_.erase(v);
  }
}

void Tuning::Fail(int v, const Failure& failure) {
  result(v).verdict = failure.verdict;
  result(v).reason = failure.reason;
  tried_.insert(v);
  race_.Leave(v);
  if (loaded_.erase(v) != 0) runner_.Unload(v);
  if (options_.journal == nullptr) return;
  options_.journal->Begin(options_.key, result(v));
  options_.journal->End(options_.key, result(v));
}

/// Verifies the winner once more on fresh data, after all the timing.
absl::Status Tuning::VerifyWinner() {
  for (int winner = race_.Winner(); winner >= 0; winner = race_.Winner()) {
    ASSIGN_OR_RETURN(const std::optional<Failure> failure, Verify(winner));
    if (!failure.has_value()) return absl::OkStatus();
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

void Tuning::FillTimings() {
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

TuningRecord Tuning::MakeRecord(int winner) {
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
  record.complete = stop_ == Stop::kNo || (stop_ == Stop::kBudget && saw_all);
  record.created_s = absl::ToUnixSeconds(absl::Now());
  record.origin = MachineDigest();
  return record;
}

/// Stores the best variant so far, for the case that the job is killed.
absl::Status Tuning::StoreBestSoFar() {
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

absl::StatusOr<Tuned> Tuning::Finish() {
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

}  // namespace coconet
