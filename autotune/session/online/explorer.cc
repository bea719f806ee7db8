#include "autotune/session/online/explorer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/measure/statistics.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// The most that a variant's first call takes, in times of what is expected: its memory may be
/// cold.
constexpr double kMostOfFirst = 2;
/// The most that its other calls take, in times of what they took so far.
constexpr double kMostOfCall = 1.75;
/// The most excess of the incumbent's first call after a trial, in its own steps.
constexpr double kMostOfBack = 0.5;
/// The most that an agreement takes, in times of what others took.
constexpr double kMostOfAgreement = 1.5;
/// Calls of a trial: a first one, which is not compared, and samples.
constexpr int kMostCalls = 3, kLeastCalls = 2;
/// Readings of the incumbent on each side of a trial.
constexpr int kBeside = 2;
/// Single calls of a variant, of which the fastest counts, before it is too slow.
constexpr int kMostProbes = 3;
/// Trials after which a variant is dropped if each has shown it to be slower by this.
constexpr int kClearTrials = 4;
constexpr double kClearlySlower = 1.1;
/// A variant is dropped after so many overruns more than so many times those that the incumbent
/// would have had in as many calls. Before there are readings, one in 20 is expected of it.
constexpr double kMostOverruns = 4, kMoreOften = 3;
constexpr double kPriorOverruns = 1, kPriorCalls = 20;
/// Readings on both sides of a trial that differ by this factor are of a machine that changes.
constexpr double kUnsteady = 1.5;
constexpr size_t kLatest = 24;            // calls by which a variant's ratio is estimated
constexpr size_t kAgreements = 5;         // of which the median counts
constexpr size_t kIncumbentTimes = 1000;  // readings that are kept

template <class T>
void KeepLatest(size_t count, std::vector<T>& values) {
  if (values.size() > count) values.erase(values.begin(), values.end() - count);
}

}  // namespace

Explorer::Explorer(std::vector<double> expected_us, double agreement_us,
                   const ExplorerOptions& options)
    : options_(options),
      random_(options.seed),
      variants_(expected_us.size()),
      incumbent_us_(expected_us[0]),
      agreements_us_({agreement_us}),
      account_(options.window, options.most_excess * options.window) {
  variants_[0].state = State::kIncumbent;
  for (size_t v = 1; v < variants_.size(); ++v) {
    variants_[v].expected = expected_us[v] / expected_us[0];
    if (!(variants_[v].expected <= options_.most_ratio)) variants_[v].state = State::kTooSlow;
  }
  if (AgreesTooSlowly()) {
    refusal_ = absl::StrFormat("a step takes %s, and the ranks need %s to agree",
                               TimeText(incumbent_us_), TimeText(agreement_us));
    return;
  }
  Plan();
}

Explorer::Call Explorer::Planned() {
  const Event& event = plan_[at_++];
  explored_ += event.variant != incumbent_;
  return {event.variant, true, at_ == plan_.size()};
}

double Explorer::agreement_us() const { return Median(agreements_us_); }

double Explorer::MostOfAgreement() const {
  return kMostOfAgreement * agreement_us() / incumbent_us_;
}

bool Explorer::AgreesTooSlowly() const {
  const double least = kLeastCalls * (kMostOfCall - 1) + kMostOfBack;
  return !(least + MostOfAgreement() <= account_.allowance());
}

double Explorer::TypicalOf(const Variant& variant) const {
  if (variant.calls.empty()) return variant.expected;
  // The lower one of two in the middle: the machine slows calls down, but makes none faster.
  std::vector<double> calls = variant.calls;
  const auto middle = calls.begin() + (std::ssize(calls) - 1) / 2;
  std::nth_element(calls.begin(), middle, calls.end());
  return *middle;
}

bool Explorer::IsProbed(const Variant& variant) const {
  return variant.probes > 0 &&
         absl::c_any_of(variant.calls, [&](double ratio) { return ratio <= options_.most_ratio; });
}

std::vector<double> Explorer::MostOf(const Variant& variant) const {
  const double room = account_.allowance() - kMostOfBack - MostOfAgreement();
  if (!IsProbed(variant)) {
    if (kMostOfFirst * variant.expected - 1 > room) return {};
    return {room};
  }
  const double most = std::max(kMostOfCall * TypicalOf(variant) - 1, kMostOfCall - 1);
  const int calls = static_cast<int>(std::min<double>(kMostCalls, room / most));
  return std::vector<double>(calls < kLeastCalls ? 0 : calls, most);
}

bool Explorer::AddTrial(int variant) {
  const std::vector<double> calls = MostOf(variants_[variant]);
  if (calls.empty()) return false;
  std::vector<double> most = calls;
  most.push_back(kMostOfBack);
  most.resize(calls.size() + 1 + kBeside);
  most.back() = MostOfAgreement();
  const int64_t begin = account_.Place(call_ + 1 + kBeside, most);
  CC_CHECK(begin != ExcessAccount::kNever);
  for (int i = -kBeside; i < std::ssize(most); ++i) {
    const int behind = i - static_cast<int>(calls.size());
    const Part part = i < 0         ? Part::kBefore
                      : i == 0      ? Part::kFirst
                      : behind < 0  ? Part::kSample
                      : behind == 0 ? Part::kBack
                                    : Part::kAfter;
    plan_.push_back(
        {begin + i, i >= 0 && behind < 0 ? variant : incumbent_, part, i < 0 ? 0 : most[i]});
    if (i >= 0) account_.Reserve(begin + i, most[i]);
  }
  return true;
}

int Explorer::NextInTurn() {
  const auto is_open = [&](int v) { return variants_[v].state == State::kOpen; };
  std::erase_if(turns_, [&](int v) { return !is_open(v); });
  if (turns_.empty()) {
    for (int v = 0; v < std::ssize(variants_); ++v) {
      if (is_open(v)) turns_.push_back(v);
    }
    for (size_t i = turns_.size(); i > 1; --i) std::swap(turns_[i - 1], turns_[random_() % i]);
  }
  if (turns_.empty()) return -1;
  const int next = turns_.back();
  turns_.pop_back();
  return next;
}

void Explorer::Plan() {
  plan_.clear();
  at_ = 0;
  account_.Forget(call_);
  for (int variant = NextInTurn(); variant >= 0; variant = NextInTurn()) {
    if (AddTrial(variant)) return;
    variants_[variant].state = State::kTooSlow;
  }
}

void Explorer::Learn(absl::Span<const double> us) {
  std::vector<double> before, after, samples;
  int variant = incumbent_;
  for (size_t i = 0; i < plan_.size(); ++i) {
    if (plan_[i].part == Part::kBefore) before.push_back(us[i]);
    if (plan_[i].part == Part::kAfter) after.push_back(us[i]);
    if (plan_[i].part == Part::kFirst) variant = plan_[i].variant;
    if (plan_[i].part == Part::kSample) samples.push_back(us[i]);
  }
  std::vector<double> beside = before;
  absl::c_copy(after, std::back_inserter(beside));
  absl::c_copy(beside, std::back_inserter(incumbent_times_us_));
  KeepLatest(kIncumbentTimes, incumbent_times_us_);
  const double reference = Median(beside);
  Variant& v = variants_[variant];
  const auto count = [](bool overrun, Overruns& of) {
    ++of.calls;
    of.overruns += overrun;
  };
  for (size_t i = 0; i < plan_.size(); ++i) {
    const Event& event = plan_[i];
    const double excess = us[i] / reference - 1;
    if (event.part == Part::kBefore || event.part == Part::kAfter) {
      count(excess > kMostOfCall - 1, incumbent_overruns_);
    } else {
      // The last event's agreement is charged when it has been measured.
      account_.Charge(event.call, std::max(excess, 0.0));
      if (event.part == Part::kBack) continue;
      v.calls.push_back(us[i] / reference);
      count(excess > event.most, v.overruns);
    }
  }
  KeepLatest(kLatest, v.calls);
  if (samples.empty()) ++v.probes;
  incumbent_us_ = Median(incumbent_times_us_);
  const double change = Median(before) / Median(after);
  if (samples.empty() || change > kUnsteady || change < 1 / kUnsteady) return;
  v.ratios.push_back(std::accumulate(samples.begin(), samples.end(), 0.0) /
                     static_cast<double>(samples.size()) / reference);
}

bool Explorer::IsDropped(const Variant& variant) const {
  if (!IsProbed(variant)) return variant.probes >= kMostProbes;
  const double share =
      (kPriorOverruns + incumbent_overruns_.overruns) / (kPriorCalls + incumbent_overruns_.calls);
  return variant.overruns.overruns >= kMostOverruns + kMoreOften * share * variant.overruns.calls;
}

void Explorer::Decide() {
  int fastest = -1;
  double least = 1;
  for (int v = 0; v < std::ssize(variants_); ++v) {
    Variant& variant = variants_[v];
    if (variant.state != State::kOpen) continue;
    if (IsDropped(variant)) {
      variant.state = State::kTooSlow;
      continue;
    }
    if (std::ssize(variant.ratios) >= kClearTrials &&
        absl::c_all_of(variant.ratios, [](double ratio) { return ratio > kClearlySlower; })) {
      variant.state = State::kSlower;
    }
    if (std::ssize(variant.ratios) < options_.least_trials) continue;
    const Timing ratio = Summarize(variant.ratios);
    if (ratio.high_us < 1 && ratio.median_us < 1 - options_.tie) {
      if (ratio.median_us < least) {
        least = ratio.median_us;
        fastest = v;
      }
    } else if (ratio.low_us > 1 - options_.tie || ratio.samples >= options_.most_trials) {
      variant.state = State::kSlower;
    }
  }
  if (fastest >= 0) SwitchTo(fastest);
}

void Explorer::SwitchTo(int variant) {
  const double ratio = Median(variants_[variant].ratios);
  for (Variant& v : variants_) {
    // They are relative to the old incumbent: trials of open variants begin anew.
    if (v.state == State::kOpen) v.ratios.clear();
    for (double& of : v.ratios) of /= ratio;
    for (double& call : v.calls) call /= ratio;
    v.expected /= ratio;
  }
  Variant& old = variants_[incumbent_];
  old.state = State::kOpen;
  old.expected = 1 / ratio;
  old.probes = 1;
  old.calls = {1 / ratio};
  old.ratios.clear();
  variants_[variant].state = State::kIncumbent;
  variants_[variant].ratios.clear();
  incumbent_times_us_.clear();
  incumbent_us_ *= ratio;
  account_.Scale(1 / ratio);
  incumbent_ = variant;
  ++switches_;
}

void Explorer::Agree(absl::Span<const double> us, double agreement_us) {
  CC_CHECK(us.size() == plan_.size() && at_ == plan_.size());
  if (agreed_call_ > 0) account_.Charge(agreed_call_, agreement_us / incumbent_us_);
  agreed_call_ = call_;
  // One that took long may have done so because of other programs.
  agreements_us_.push_back(agreement_us);
  KeepLatest(kAgreements, agreements_us_);
  Learn(us);
  Decide();
  if (AgreesTooSlowly()) {
    plan_.clear();
    at_ = 0;
    return;
  }
  Plan();
}

Timing Explorer::timing(int variant) const {
  if (variant == incumbent_) return Summarize(incumbent_times_us_);
  Timing timing = Summarize(variants_[variant].ratios);
  for (double* us : {&timing.median_us, &timing.low_us, &timing.high_us}) *us *= incumbent_us_;
  return timing;
}

}  // namespace coconet
