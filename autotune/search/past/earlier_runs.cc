#include "autotune/search/past/earlier_runs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "autotune/measure/statistics.h"
#include "autotune/store/wire.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// The fastest variants, up to this factor, are timed again, at most so many.
constexpr double kLeading = 1.15;
constexpr size_t kMostLeaders = 4;
/// So many variants must agree, up to this factor, on how times have changed.
constexpr size_t kAnchors = 2;
constexpr double kAgree = 1.15;
/// What an earlier run found slower by this factor is not tried again, unless it ran under more
/// load than this.
constexpr double kClearlySlower = 1.1, kLittleLoad = 0.25;

}  // namespace

std::string Slowness(double factor) {
  if (factor <= 1) return "slower in rounds with the best";
  return factor < 1.25 ? absl::StrFormat("slower by %.1f %%", (factor - 1) * 100)
                       : absl::StrFormat("%.1fx as long as the best", factor);
}

absl::Status EarlierRuns::Learn(TuningJournal* journal, const std::string& key, Trials& trials,
                                Exchange& exchange) {
  Packer known;
  if (journal != nullptr) {
    std::map<std::string, int> numbers;
    for (int v = 0; v < trials.size(); ++v) numbers.emplace(NameOf(trials.result(v)), v);
    for (const VariantResult& v : journal->Failures(key)) {
      const auto at = numbers.find(NameOf(v));
      if (at != numbers.end()) known.Int(at->second).Text(v.reason).Int(0);
    }
    for (const VariantResult& v : journal->Variants(key)) {
      const auto at = numbers.find(NameOf(v));
      const Timing& t = v.timing;
      if (at == numbers.end() || t.samples == 0) continue;
      known.Int(at->second).Text("").Int(t.samples);
      known.Real(t.median_us).Real(t.low_us).Real(t.high_us).Real(v.load);
    }
  }
  known.Int(-1);
  ASSIGN_OR_RETURN(const std::string all, exchange.Broadcast(known.bytes()));
  Unpacker in(all);
  for (int64_t v = in.Int(); v >= 0 && v < trials.size(); v = in.Int()) {
    VariantResult& result = trials.result(static_cast<int>(v));
    const std::string reason = in.Text();
    Timing t{.samples = static_cast<int>(in.Int())};
    if (t.samples == 0) {
      result.verdict = Verdict::kQuarantined;
      result.reason = reason;
      continue;
    }
    t.median_us = in.Real();
    t.low_us = in.Real();
    t.high_us = in.Real();
    times_[static_cast<int>(v)] = {t, in.Real()};
  }
  return in.Done();
}

std::vector<int> EarlierRuns::Leaders() const {
  std::vector<std::pair<double, int>> order;
  for (const auto& [v, time] : times_) order.emplace_back(time.timing.median_us, v);
  absl::c_sort(order);
  std::vector<int> leaders;
  for (const auto& [us, v] : order) {
    if (us <= kLeading * order[0].first && leaders.size() < kMostLeaders) leaders.push_back(v);
  }
  return leaders;
}

bool EarlierRuns::Convert(Trials& trials, Strategy& strategy, int baseline, bool rules_out) {
  std::vector<double> logs;  // of the factors by which times have changed
  for (const auto& [v, time] : times_) {
    const Timing now = trials.race().timing(v);
    if (now.samples > 0) logs.push_back(std::log(now.median_us / time.timing.median_us));
  }
  if (logs.empty() || trials.Fastest() < 0) {
    times_.clear();
    return true;
  }
  const auto [least, most] = absl::c_minmax_element(logs);
  const bool agree =
      logs.size() >= std::min(kAnchors, times_.size()) && *most - *least <= std::log(kAgree);
  const double factor = std::exp(Median(logs));
  for (auto& [v, time] : times_) {
    Timing& t = time.timing;
    t = {factor * t.median_us, factor * t.low_us, factor * t.high_us, t.samples};
    if (trials.tried().contains(v)) continue;
    strategy.Add(v, t.median_us);
    if (!agree || !rules_out || time.load > kLittleLoad || v == baseline ||
        t.low_us < kClearlySlower * trials.BestUs() || !trials.IsUntried(v))
      continue;
    trials.result(v).verdict = Verdict::kPruned;
    trials.result(v).reason =
        absl::StrCat(Slowness(t.median_us / trials.BestUs()), " in an earlier run");
  }
  if (!agree) times_.clear();
  return agree;
}

std::optional<EarlierRuns::Time> EarlierRuns::Of(int v) const {
  const auto at = times_.find(v);
  return at == times_.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace coconet
