#include "bench/search/replay.h"

#include <algorithm>
#include <utility>

namespace coconet::bench {
namespace {

constexpr double kTurnUs = 3000;   // of a program on a core that two share
constexpr double kRefillUs = 100;  // of caches, after a turn of another program
constexpr double kGapUs = 50;      // between samples, besides the warm-up
constexpr double kShareEveryUs = 1e5;
constexpr double kRoundUs = 20000;  // beside a load

}  // namespace

double InjectedLoad::Run(double us) {
  double lost_us = 0;
  while (us > 0) {
    const double until_us = in_spell_ ? std::min(phase_end_us_, turn_end_us_) : phase_end_us_;
    const double span_us = std::max(0.0, until_us - now_us_);
    if (is_ranks_turn_ && us < span_us) {
      now_us_ += us;
      break;
    }
    now_us_ = until_us;
    (is_ranks_turn_ ? us : lost_us) += is_ranks_turn_ ? -span_us : span_us;
    if (!is_ranks_turn_) taken_us_ += span_us;
    if (now_us_ >= phase_end_us_) {
      in_spell_ = !in_spell_;
      phase_end_us_ = now_us_ + Draw();
      if (!is_ranks_turn_) us += kRefillUs;
      is_ranks_turn_ = !in_spell_;  // who wakes up has the core first
    } else {
      is_ranks_turn_ = !is_ranks_turn_;
      if (is_ranks_turn_) us += kRefillUs;
    }
    turn_end_us_ = now_us_ + kTurnUs;
  }
  return lost_us;
}

double InjectedLoad::TakeShare() {
  const double us = now_us_ - share_from_us_;
  if (us < kShareEveryUs) return -1;
  share_from_us_ = now_us_;
  return std::exchange(taken_us_, 0) / (2 * us);
}

absl::StatusOr<std::vector<std::optional<Failure>>> Replayer::Compile(
    absl::Span<const int> variants, const std::function<bool()>& /*stop*/) {
  std::vector<std::optional<Failure>> failures;
  for (int v : variants) {
    failures.push_back(samples_[v].empty()
                           ? std::optional(Failure{Verdict::kCompileError, "as recorded"})
                           : std::nullopt);
  }
  return failures;
}

absl::StatusOr<VariantRunner::Sample> Replayer::Time(int v, int warm_up, int steps) {
  // Beside a load samples are repeated.
  const auto round =
      load_.has_value() ? static_cast<uint64_t>(load_->now_us() / kRoundUs) : calls_++ / 2;
  Sample sample = samples_[v][std::mt19937_64(seed_ * 1000003 + round)() % samples_[v].size()];
  const double us = sample.us;
  if (!load_.has_value()) {
    seconds_ += 1e-6 * us * (warm_up + steps);
    return sample;
  }
  const double begin_us = load_->now_us();
  sample.lost_before_us = load_->Run(us * warm_up + kGapUs);
  sample.gap_us = load_->now_us() - begin_us;
  const double own_us = us * steps;  // of which the sample had lost some when it was recorded
  const double timed_us = load_->now_us(), lost_us = load_->Run(own_us);
  const double took_us = load_->now_us() - timed_us;
  sample.us = took_us / steps;
  sample.lost = (lost_us + sample.lost * own_us) / took_us;
  sample.lost_all = (lost_us + sample.lost_all * own_us) / took_us;
  seconds_ = 1e-6 * load_->now_us();
  return sample;
}

absl::StatusOr<double> Replayer::LoadByOthers() { return load_ ? load_->TakeShare() : 0.0; }

}  // namespace coconet::bench
