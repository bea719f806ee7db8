#include "autotune/session/online/explorer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/measure/statistics.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// The share of the allowance that is planned with: the rest is for what takes longer than
/// expected.
constexpr double kPlanned = 0.9;
/// The share of the planned allowance that a variant's first call may take.
constexpr double kProbeShare = 0.7;
/// Single calls of a variant, of which the fastest counts, before it is too slow.
constexpr int kMostProbes = 3;
/// What a call may take beyond what the variant's calls took so far, as a factor of their excess,
/// and in steps of the incumbent.
constexpr double kMargin = 1.25, kLeastExcess = 0.04;
/// Readings on both sides of a trial that differ by this factor are of a machine that changes.
constexpr double kUnsteady = 1.5;
constexpr size_t kLatest = 24;            // calls by which a variant's excess is estimated
constexpr size_t kAgreements = 5;         // of which the median counts
constexpr size_t kIncumbentTimes = 1000;  // readings that are kept

uint64_t Draw(uint64_t& state) {  // splitmix64
  uint64_t z = state += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

double Quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

}  // namespace

Explorer::Explorer(std::vector<double> expected_us, double agreement_us,
                   const ExplorerOptions& options)
    : options_(options),
      random_(options.seed),
      variants_(expected_us.size()),
      incumbent_us_(expected_us[0]),
      agreements_us_({agreement_us}) {
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

bool Explorer::AgreesTooSlowly() const {
  return kMargin * agreement_us() / incumbent_us_ > kPlanned * allowance();
}

double Explorer::MostOf(const Variant& variant) const {
  if (variant.calls.empty()) return variant.expected;
  const size_t calls = variant.calls.size();
  if (calls >= 4) return Quantile(variant.calls, calls >= 8 ? 0.75 : 0.5);
  // Calls that took longer than this were repeated: the machine was slow, not the variant.
  double most = 0;
  for (double ratio : variant.calls) {
    if (ratio <= options_.most_ratio) most = std::max(most, ratio);
  }
  return most;
}

bool Explorer::IsProbed(const Variant& variant) const {
  return variant.probes > 0 &&
         absl::c_any_of(variant.calls, [&](double ratio) { return ratio <= options_.most_ratio; });
}

int64_t Explorer::Place(int64_t from, absl::Span<const double> excess) const {
  const double most = kPlanned * allowance();
  double sum = 0;
  for (double e : excess) sum += e;
  if (sum > most) return kNever;
  const auto count = static_cast<int64_t>(excess.size());
  for (int64_t begin = from;;) {
    int64_t next = begin;
    double own = 0;
    for (int64_t i = 0; i < count && next == begin; ++i) {
      own += excess[i];
      double window = own;
      int64_t oldest = begin;
      for (size_t s = spent_.size(); s-- > 0;) {
        if (spent_[s].call <= begin + i - options_.window) break;
        window += spent_[s].excess;
        oldest = spent_[s].call;
      }
      // Later by so much, the oldest is outside of the window.
      if (window > most) next = oldest + options_.window - i;
    }
    if (next == begin) return begin;
    begin = std::max(next, begin + 1);
  }
}

int64_t Explorer::AddTrial(int variant, int samples, double probe_excess, int64_t from) {
  const double each = probe_excess > 0
                          ? probe_excess
                          : kLeastExcess + kMargin * std::max(MostOf(variants_[variant]) - 1, 0.0);
  std::vector<double> excess(samples + 1, each);
  excess.push_back(kLeastExcess);
  constexpr int kBeside = 2;  // readings of the incumbent on each side
  const int64_t begin = Place(from + kBeside, excess);
  if (begin == kNever) return kNever;
  const int trial = trials_planned_++;
  int64_t call = begin - kBeside;
  const auto add = [&](int count, int of, Part part) {
    for (int i = 0; i < count; ++i) plan_.push_back({call++, of, trial, part});
  };
  add(kBeside, incumbent_, Part::kBefore);
  add(1, variant, Part::kFirst);
  add(samples, variant, Part::kSample);
  add(1, incumbent_, Part::kBack);
  add(kBeside, incumbent_, Part::kAfter);
  for (size_t i = 0; i < excess.size(); ++i)
    spent_.push_back({begin + static_cast<int64_t>(i), excess[i]});
  return call;
}

void Explorer::Plan() {
  plan_.clear();
  at_ = 0;
  trials_planned_ = 0;
  std::erase_if(spent_, [&](const Spent& s) { return s.call <= call_ - options_.window; });
  int64_t from = call_ + 1;
  std::vector<int> open, probed;
  for (int v = 0; v < std::ssize(variants_); ++v) {
    if (variants_[v].state != State::kOpen) continue;
    open.push_back(v);
    if (IsProbed(variants_[v])) probed.push_back(v);
  }
  if (open.empty()) return;
  if (probed.size() < open.size()) {
    for (int v : open) {
      if (IsProbed(variants_[v])) continue;
      from = AddTrial(v, 0, kProbeShare * kPlanned * allowance(), from);
    }
  } else {
    std::vector<int> order;
    for (int trial = 0; trial < std::max<int>(trials_, std::ssize(probed)); ++trial) {
      if (order.empty()) {
        order = probed;
        for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[Draw(random_) % i]);
      }
      const int64_t behind = AddTrial(order.back(), 2, 0, from);
      if (behind == kNever)
        variants_[order.back()].state = State::kTooSlow;
      else
        from = behind;
      order.pop_back();
    }
    trials_ = std::min(2 * trials_, options_.most_trials_together);
  }
  if (plan_.empty()) return Plan();  // those that were open are too slow
  const double agreement = kMargin * agreement_us() / incumbent_us_;
  const int64_t last = Place(from, {&agreement, 1});
  CC_CHECK(last != kNever);
  plan_.push_back({last, incumbent_, -1, Part::kAfter});
  spent_.push_back({last, agreement});
}

void Explorer::Learn(absl::Span<const double> us) {
  const int64_t begin = plan_.front().call;
  std::erase_if(spent_, [&](const Spent& s) { return s.call >= begin; });
  size_t i = 0;
  for (int trial = 0; trial < trials_planned_; ++trial) {
    std::vector<double> before, after, beside, samples;
    const size_t first = i;
    int variant = incumbent_;
    for (; i < plan_.size() && plan_[i].trial == trial; ++i) {
      if (plan_[i].part == Part::kBefore) before.push_back(us[i]);
      if (plan_[i].part == Part::kAfter) after.push_back(us[i]);
      if (plan_[i].part == Part::kFirst) variant = plan_[i].variant;
      if (plan_[i].part == Part::kSample) samples.push_back(us[i]);
    }
    absl::c_copy(before, std::back_inserter(beside));
    absl::c_copy(after, std::back_inserter(beside));
    absl::c_copy(beside, std::back_inserter(incumbent_times_us_));
    const double reference = Median(beside);
    Variant& v = variants_[variant];
    for (size_t e = first; e < i; ++e) {
      const bool explored = plan_[e].variant != incumbent_;
      if (explored) v.calls.push_back(us[e] / reference);
      if (explored || plan_[e].part == Part::kBack)
        spent_.push_back({plan_[e].call, std::max(us[e] / reference - 1, 0.0)});
    }
    if (v.calls.size() > kLatest) v.calls.erase(v.calls.begin(), v.calls.end() - kLatest);
    if (samples.empty()) ++v.probes;
    const double change = Median(before) / Median(after);
    if (samples.empty() || change > kUnsteady || change < 1 / kUnsteady) continue;
    v.ratios.push_back(std::accumulate(samples.begin(), samples.end(), 0.0) /
                       static_cast<double>(samples.size()) / reference);
  }
  std::vector<double>& times = incumbent_times_us_;
  if (times.size() > kIncumbentTimes) times.erase(times.begin(), times.end() - kIncumbentTimes);
  incumbent_us_ = Median(times);
}

void Explorer::Decide() {
  int fastest = -1;
  double least = 1;
  for (int v = 0; v < std::ssize(variants_); ++v) {
    Variant& variant = variants_[v];
    if (variant.state != State::kOpen) continue;
    if (!IsProbed(variant) && variant.probes >= kMostProbes) {
      variant.state = State::kTooSlow;
      continue;
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
    if (v.state == State::kOpen) v.ratios.clear();  // they are relative to the old incumbent
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
  incumbent_ = variant;
  trials_ = 4;
  ++switches_;
}

void Explorer::Agree(absl::Span<const double> us, double agreement_us) {
  CC_CHECK(us.size() == plan_.size() && at_ == plan_.size());
  Learn(us);
  // One that took long may have done so because of other programs.
  agreements_us_.push_back(agreement_us);
  if (agreements_us_.size() > kAgreements) agreements_us_.erase(agreements_us_.begin());
  spent_.push_back({call_, agreement_us / incumbent_us_});
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
