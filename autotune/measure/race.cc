#include "autotune/measure/race.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "autotune/measure/statistics.h"

namespace coconet {

Race::Race(int runners, int baseline, uint64_t seed, RaceOptions options)
    : baseline_(baseline),
      options_(std::move(options)),
      random_(seed),
      running_(runners),
      samples_(runners) {}

void Race::Enter(int runner) { running_[runner] = true; }
void Race::Leave(int runner) { running_[runner] = false; }
void Race::Add(int runner, double us) { samples_[runner].push_back(us); }
Timing Race::timing(int runner) const { return Summarize(samples_[runner]); }

std::vector<int> Race::NextRound() {
  std::vector<int> order;
  for (int v = 0; v < static_cast<int>(running_.size()); ++v) {
    if (running_[v]) order.push_back(v);
  }
  // Fisher-Yates by hand: std::shuffle differs between libraries, and ranks must agree.
  for (size_t i = order.size(); i > 1; --i) {
    random_ = random_ * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX generator
    std::swap(order[i - 1], order[(random_ >> 33) % i]);
  }
  return order;
}

std::string Race::ReasonToDrop(int runner, const Timing& best) const {
  const Timing t = timing(runner);
  for (const RaceOptions::Rule& rule : options_.rules) {
    if (t.samples >= rule.samples && t.low_us > rule.factor * best.median_us &&
        t.low_us >= rule.step_us) {
      return absl::StrFormat("%.1fx as long as the best", t.median_us / best.median_us);
    }
  }
  const bool settled = t.samples >= options_.settled && best.samples >= options_.settled;
  if (settled && t.low_us > best.high_us && !Tied(t, best, options_.tie)) {
    return absl::StrFormat("slower by %.1f %%", (t.median_us / best.median_us - 1) * 100);
  }
  return "";
}

std::vector<Race::Dropped> Race::Drop() {
  std::vector<Dropped> dropped;
  const int fastest = Fastest();
  if (fastest < 0) return dropped;
  const Timing best = timing(fastest);
  std::vector<std::pair<double, int>> left;  // without the baseline
  bool settled = true;
  for (int v = 0; v < static_cast<int>(running_.size()); ++v) {
    if (!running_[v] || v == baseline_) continue;
    if (std::string reason = ReasonToDrop(v, best); v != fastest && !reason.empty()) {
      dropped.push_back({v, std::move(reason)});
      continue;
    }
    left.push_back({timing(v).median_us, v});
    settled = settled && static_cast<int>(samples_[v].size()) >= options_.settled;
  }
  std::sort(left.begin(), left.end());
  for (size_t i = options_.finalists; settled && i < left.size(); ++i) {
    dropped.push_back(
        {left[i].second, absl::StrFormat("not among the %d fastest", options_.finalists)});
  }
  for (const Dropped& d : dropped) running_[d.runner] = false;
  return dropped;
}

std::vector<Race::Dropped> Race::KeepQuickest(int most) {
  std::vector<std::pair<double, int>> left;
  for (int v = 0; v < static_cast<int>(running_.size()); ++v) {
    if (running_[v] && v != baseline_ && !samples_[v].empty())
      left.emplace_back(timing(v).low_us, v);
  }
  std::sort(left.begin(), left.end());
  std::vector<Dropped> dropped;
  for (size_t i = most; i < left.size(); ++i) {
    running_[left[i].second] = false;
    dropped.push_back(
        {left[i].second, absl::StrFormat("not among the %d fastest that time allowed", most)});
  }
  return dropped;
}

bool Race::Finished() const {
  const int fastest = Fastest();
  const Timing best = fastest < 0 ? Timing() : timing(fastest);
  for (int v = 0; v < static_cast<int>(running_.size()); ++v) {
    if (!running_[v]) continue;
    const Timing t = timing(v);
    if (t.samples < options_.samples) return false;
    const bool apart = t.median_us > (1 + options_.tie) * best.median_us;
    if (apart && Tied(t, best, options_.tie) && t.samples < options_.most_samples) return false;
  }
  return true;
}

int Race::Fastest() const { return RunnerUp(-1); }

int Race::RunnerUp(int winner) const {
  int fastest = -1;
  double fastest_us = 0;
  for (int v = 0; v < static_cast<int>(running_.size()); ++v) {
    if (!running_[v] || v == winner || samples_[v].empty()) continue;
    const double us = Median(samples_[v]);
    if (fastest >= 0 && us >= fastest_us) continue;
    fastest = v;
    fastest_us = us;
  }
  return fastest;
}

int Race::Winner() const {
  const int fastest = Fastest();
  if (fastest < 0) return -1;
  const Timing best = timing(fastest);
  const auto as_fast = [&](int v, double most) {
    if (!running_[v] || samples_[v].empty()) return false;
    const Timing t = timing(v);
    return Tied(t, best, options_.tie) && t.median_us <= (1 + most) * best.median_us;
  };
  if (as_fast(baseline_, options_.noisy_baseline_tie)) return baseline_;
  for (int v = 0; v < fastest; ++v) {
    if (as_fast(v, options_.noisy_tie)) return v;
  }
  return fastest;
}

}  // namespace coconet
