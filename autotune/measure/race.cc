#include "autotune/measure/race.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "autotune/measure/statistics.h"

namespace coconet {
namespace {

constexpr int kSweeps = 8;        // of the fit
constexpr int kMostSamples = 20;  // of a runner's samples in a round's slowness
constexpr double kLeastNoise = 0.005;
constexpr double kUnknownNoise = 0.1;
constexpr double kDeviation = 1.4826;  // standard deviation over median absolute deviation
/// Number of samples from which order statistics give an interval of 95 %.
constexpr int kEnoughForInterval = 6;
/// Standard errors beyond a tie at which few samples drop a runner; and the factor beyond at which
/// a single one does.
constexpr double kSure = 2, kSureOfOne = 1.25;
/// If a sample lost a core, the time that it ran is a bound; with so many rounds, the median is
/// better than the bounds.
constexpr size_t kManyUnclean = 10;
/// A memory counts from so many rounds on, and memories from so many on.
constexpr size_t kEnoughInMemory = 3, kEnoughMemories = 4;
/// Standard errors of a median of normal values, 1.25 times those of their mean, beyond which it is
/// in one of 20 cases if there are few values.
constexpr double kSureOfMedian = 1.25 * 2.5;
constexpr double kMostLost = 0.99;  // so that a bound exists
constexpr size_t kFewClean = 2;     // pairs that count alone

/// The value at which half of the weight is reached. Sorts `values`: pairs of value and weight.
double WeightedMedian(std::vector<std::pair<double, double>>& values) {
  std::sort(values.begin(), values.end());
  double all = 0, sum = 0;
  for (const auto& [value, weight] : values) all += weight;
  for (size_t i = 0; i < values.size(); ++i) {
    sum += values[i].second;
    if (sum > all / 2) return values[i].first;
    if (sum == all / 2 && i + 1 < values.size()) return (values[i].first + values[i + 1].first) / 2;
  }
  return 0;
}

}  // namespace

Race::Race(int runners, int baseline, uint64_t seed, RaceOptions options)
    : baseline_(baseline),
      options_(std::move(options)),
      random_(seed),
      running_(runners),
      samples_(runners) {}

void Race::Enter(int runner) { running_[runner] = true; }
void Race::Leave(int runner) { running_[runner] = false; }

void Race::Add(int runner, const Reading& reading) {
  samples_[runner].push_back({round_, std::log(std::max(reading.us, 1e-6)), reading.lost,
                              std::max(reading.lost, reading.lost_all), reading.quiet, meeting_us_,
                              memory_});
  latest_ = runner;
  fitted_ = false;
}

void Race::Disturb() {
  if (latest_ < 0) return;
  samples_[latest_].back().quiet = false;
  fitted_ = false;
}

std::vector<Race::Sample> Race::Usable(int runner) const {
  std::vector<Sample> clean;
  absl::c_copy_if(samples_[runner], std::back_inserter(clean),
                  [&](const Sample& s) { return IsClean(s); });
  return clean.size() >= static_cast<size_t>(options_.enough_clean) ? clean : samples_[runner];
}

const Race::Fit& Race::Fitted() const {
  if (fitted_) return fit_;
  Fit fit{std::vector<double>(samples_.size()), std::vector<double>(round_ + 1), 0};
  struct Of {
    int runner;
    double log_us, weight;
  };
  std::vector<std::vector<Of>> rounds(round_ + 1);
  for (size_t v = 0; v < samples_.size(); ++v) {
    const std::vector<Sample> usable = Usable(static_cast<int>(v));
    std::vector<double> logs;
    for (const Sample& s : usable) {
      logs.push_back(s.log_us);
      rounds[s.round].push_back(
          {static_cast<int>(v), s.log_us,
           static_cast<double>(std::min<size_t>(usable.size(), kMostSamples))});
    }
    fit.level[v] = Median(std::move(logs));
  }
  std::vector<std::vector<double>> levels(samples_.size());
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::vector<double>& of_runner : levels) of_runner.clear();
    for (size_t r = 0; r < rounds.size(); ++r) {
      std::vector<std::pair<double, double>> slowness;
      for (const Of& s : rounds[r]) slowness.emplace_back(s.log_us - fit.level[s.runner], s.weight);
      fit.slowness[r] = WeightedMedian(slowness);
      for (const Of& s : rounds[r]) levels[s.runner].push_back(s.log_us - fit.slowness[r]);
    }
    for (size_t v = 0; v < levels.size(); ++v) {
      if (!levels[v].empty()) fit.level[v] = Median(levels[v]);
    }
  }
  // Levels are those of the usual round.
  std::vector<double> slowness;
  for (size_t r = 0; r < rounds.size(); ++r) {
    if (rounds[r].size() > 1) slowness.push_back(fit.slowness[r]);
  }
  const double usual = Median(std::move(slowness));
  for (double& s : fit.slowness) s -= usual;
  for (double& level : fit.level) level += usual;
  fit.noise = NoiseOf(fit);
  fit_ = std::move(fit);
  fitted_ = true;
  return fit_;
}

double Race::NoiseOf(const Fit& fit) const {
  std::vector<double> deviations;
  for (size_t v = 0; v < samples_.size(); ++v) {
    const std::vector<Sample> usable = Usable(static_cast<int>(v));
    const auto n = static_cast<double>(usable.size());
    for (const Sample& s : usable) {
      const double deviation = std::abs(s.log_us - fit.slowness[s.round] - fit.level[v]);
      // The runner by which its rounds are measured has no deviation left.
      if (n > 1 && deviation > 0) deviations.push_back(deviation * std::sqrt(n / (n - 1)));
    }
  }
  // Where a runner ran alone, by itself.
  const std::vector<Sample>& alone = samples_[baseline_];
  for (size_t i = 1; i < alone.size() && deviations.size() < 2; ++i)
    deviations.push_back(std::abs(alone[i].log_us - alone[i - 1].log_us));
  return deviations.empty() ? kUnknownNoise
                            : std::max(kDeviation * Median(std::move(deviations)), kLeastNoise);
}

Race::Differences Race::DifferencesOf(int runner, int other) const {
  const std::vector<Sample>&mine = samples_[runner], &theirs = samples_[other];
  Differences all, of_clean;
  const auto add = [](const Sample& a, const Sample& b, Differences& to) {
    const double difference = a.log_us - b.log_us;
    to.log.push_back(difference);
    to.meeting_us.push_back(a.meeting_us);
    to.memory.push_back(a.memory);
    to.low.push_back(difference + std::log1p(-std::min(a.lost_all, kMostLost)));
    to.high.push_back(difference - std::log1p(-std::min(b.lost_all, kMostLost)));
  };
  size_t at = 0;
  for (const Sample& s : mine) {  // both ascend by round
    while (at < theirs.size() && theirs[at].round < s.round) ++at;
    if (at == theirs.size() || theirs[at].round != s.round) continue;
    add(s, theirs[at], all);
    if (IsClean(s) && IsClean(theirs[at])) add(s, theirs[at], of_clean);
  }
  const bool clean = of_clean.log.size() == all.log.size() || of_clean.log.size() >= kFewClean;
  Differences& chosen = clean ? of_clean : all;
  chosen.clean = clean;
  if (clean || chosen.log.size() >= kManyUnclean) chosen.low = chosen.high = chosen.log;
  return std::move(chosen);
}

int Race::CleanRounds(int runner, int other) const {
  const Differences differences = DifferencesOf(runner, other);
  return differences.clean ? static_cast<int>(differences.log.size()) : 0;
}

Race::Ratio Race::Compare(int runner, int other) const {
  if (runner == other || samples_[runner].empty() || samples_[other].empty()) return {};
  const Differences differences = DifferencesOf(runner, other);
  if (!differences.log.empty()) return RatioOf(differences);
  const Fit& fit = Fitted();  // by way of others
  Ratio ratio{.log = fit.level[runner] - fit.level[other]};
  const double error = kSure * fit.noise *
                       std::sqrt(1.0 / static_cast<double>(samples_[runner].size()) +
                                 1.0 / static_cast<double>(samples_[other].size()));
  ratio.low = ratio.log - error;
  ratio.high = ratio.log + error;
  return ratio;
}

Race::Ratio Race::RatioOf(const Differences& differences) const {
  const auto n = static_cast<int>(differences.log.size());
  const auto summary = [](const std::vector<double>& logs) {
    std::vector<double> factors;  // Summarize is of what is positive
    for (double log : logs) factors.push_back(std::exp(log));
    return Summarize(factors);
  };
  const double error = n < kEnoughForInterval ? kSure * Fitted().noise / std::sqrt(n) : 0;
  return {.log = std::log(summary(differences.log).median_us),
          .low = std::log(summary(differences.low).low_us) - error,
          .high = std::log(summary(differences.high).high_us) + error,
          .rounds = n};
}

std::vector<double> Race::MediansByMemory(const Differences& differences) {
  std::map<int, std::vector<double>> by_memory;
  for (size_t i = 0; i < differences.log.size(); ++i)
    by_memory[differences.memory[i]].push_back(differences.log[i]);
  std::vector<double> medians;
  for (auto& [memory, logs] : by_memory) {
    if (logs.size() >= kEnoughInMemory) medians.push_back(Median(std::move(logs)));
  }
  return medians;
}

int Race::Memories(int runner) const {
  return static_cast<int>(MediansByMemory(DifferencesOf(baseline_, runner)).size());
}

Race::Ratio Race::RatioOverMemories(const Differences& differences) const {
  Ratio ratio = RatioOf(differences);
  const std::vector<double> medians = MediansByMemory(differences);
  if (medians.size() < kEnoughMemories) return ratio;
  ratio.log = Median(medians);
  std::vector<double> deviations;
  for (double median : medians) deviations.push_back(std::abs(median - ratio.log));
  const double error = kSureOfMedian * kDeviation * Median(std::move(deviations)) /
                       std::sqrt(static_cast<double>(medians.size()));
  ratio.low = ratio.log - error;
  ratio.high = ratio.log + error;
  return ratio;
}

SpeedUp Race::SpeedUpOf(int runner) const {
  if (runner == baseline_) return {.rounds = static_cast<int>(samples_[runner].size())};
  const Differences all = DifferencesOf(baseline_, runner);
  if (all.log.empty()) return {};
  const Ratio ratio = RatioOverMemories(all);
  SpeedUp speed_up{.ratio = std::exp(ratio.log),
                   .low = std::exp(ratio.low),
                   .high = std::exp(ratio.high),
                   .rounds = ratio.rounds,
                   .meeting_us = Median(all.meeting_us)};
  // Where cores come to share a cache, or no longer do, ratios are those of two machines.
  Differences part[2];
  const auto [least, most] = absl::c_minmax_element(all.meeting_us);
  const double middle = std::sqrt(*least * *most);
  for (size_t i = 0; i < all.log.size(); ++i) {
    Differences& of = part[all.meeting_us[i] > middle];
    of.log.push_back(all.log[i]);
    of.memory.push_back(all.memory[i]);
    of.low.push_back(all.low[i]);
    of.high.push_back(all.high[i]);
  }
  const bool two = !MeetAlike(*least, *most) && absl::c_all_of(part, [](const Differences& of) {
    return of.log.size() >= static_cast<size_t>(kEnoughForInterval);
  });
  for (const Differences& of : part) {
    if (!two) break;
    const Ratio own = RatioOverMemories(of);
    speed_up.low = std::min(speed_up.low, std::exp(own.low));
    speed_up.high = std::max(speed_up.high, std::exp(own.high));
  }
  speed_up.low /= 1 + options_.between_runs;
  speed_up.high *= 1 + options_.between_runs;
  return speed_up;
}

Timing Race::timing(int runner) const {
  const std::vector<Sample> usable = Usable(runner);
  if (usable.empty()) return {};
  std::vector<double> us;
  for (const Sample& s : usable) us.push_back(std::exp(s.log_us));
  Timing timing = Summarize(us);
  const double scale = std::exp(Fitted().level[runner]) / timing.median_us;
  timing.median_us *= scale;
  timing.low_us *= scale;
  timing.high_us *= scale;
  return timing;
}

std::vector<int> Race::NextRound() {
  BeginRound();
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

bool Race::IsSlower(int runner) const {
  const int best = Fastest();
  if (best < 0 || best == runner || samples_[runner].empty()) return false;
  const Ratio ratio = Compare(runner, best);
  const double margin = ratio.rounds == 1 ? std::log(kSureOfOne) : 0;
  return ratio.low > std::log1p(options_.tie) + margin;
}

std::vector<Race::Dropped> Race::ToDrop() const {
  std::vector<Dropped> dropped;
  const int fastest = Fastest();
  if (fastest < 0) return dropped;
  std::vector<std::pair<double, int>> left;  // without the baseline
  bool settled = true;
  for (int v = 0; v < static_cast<int>(running_.size()); ++v) {
    if (!running_[v] || v == baseline_) continue;
    if (IsSlower(v)) {
      dropped.push_back({v, ""});
      continue;
    }
    left.push_back({Fitted().level[v], v});
    settled = settled && static_cast<int>(samples_[v].size()) >= options_.settled;
  }
  std::sort(left.begin(), left.end());
  for (size_t i = options_.finalists; settled && i < left.size(); ++i) {
    dropped.push_back(
        {left[i].second, absl::StrFormat("not among the %d fastest", options_.finalists)});
  }
  return dropped;
}

std::vector<Race::Dropped> Race::AllBut(int most) const {
  const int best = Fastest();
  std::vector<std::pair<double, int>> left;
  for (int v = 0; v < static_cast<int>(running_.size()); ++v) {
    if (running_[v] && v != baseline_ && !samples_[v].empty())
      left.emplace_back(Compare(v, best).low, v);
  }
  std::sort(left.begin(), left.end());
  std::vector<Dropped> dropped;
  for (size_t i = most; i < left.size(); ++i) {
    dropped.push_back({left[i].second, absl::StrFormat("not among the %d fastest so far", most)});
  }
  return dropped;
}

bool Race::MayBeFaster(int runner, int best) const {
  const Ratio ratio = Compare(runner, best);
  const double tie = std::log1p(options_.tie);
  // It may be slower by noise alone, or faster by more than a tie.
  return (ratio.log > tie && ratio.low <= tie) || ratio.low < -std::log1p(options_.noisy_tie);
}

bool Race::Finished() const {
  const int fastest = Fastest();
  for (int v = 0; v < static_cast<int>(running_.size()); ++v) {
    if (!running_[v]) continue;
    const auto clean = static_cast<int>(Usable(v).size());
    // Where load comes and goes, clean samples are waited for.
    if (static_cast<int>(samples_[v].size()) >= 3 * options_.most_samples) continue;
    if (clean < options_.samples) return false;
    if (v != fastest && MayBeFaster(v, fastest) && clean < options_.most_samples) return false;
  }
  return true;
}

int Race::Fastest() const { return RunnerUp(-1); }

int Race::RunnerUp(int winner) const {
  int fastest = -1;
  for (int v = 0; v < static_cast<int>(running_.size()); ++v) {
    if (!running_[v] || v == winner || samples_[v].empty()) continue;
    if (fastest < 0 || Fitted().level[v] < Fitted().level[fastest]) fastest = v;
  }
  return fastest;
}

int Race::Winner() const {
  const int fastest = Fastest();
  if (fastest < 0) return -1;
  const auto as_fast = [&](int v, double most) {
    if (!running_[v] || samples_[v].empty()) return false;
    const Ratio ratio = Compare(v, fastest);
    return ratio.log <= std::log1p(options_.tie) ||
           (ratio.low <= 0 && ratio.log <= std::log1p(most));
  };
  if (as_fast(baseline_, options_.noisy_tie)) return baseline_;
  for (int v = 0; v < fastest; ++v) {
    if (as_fast(v, options_.noisy_tie)) return v;
  }
  return fastest;
}

}  // namespace coconet
