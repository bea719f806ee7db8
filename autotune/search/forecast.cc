#include "autotune/search/forecast.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "autotune/prior/config_values.h"
#include "coconet/schedule/describe.h"

namespace coconet {
namespace {

constexpr double kLeastUs = 1e-6;
constexpr int kSweeps = 20;         // of coordinate descent
constexpr double kRidge = 0.5;      // in samples that say "no effect"
constexpr double kCuriosity = 0.5;  // what a schedule of unknown features may gain, in logarithms

/// One of: a number of the config, what a step of the outline does, what a group of an overlap
/// does, a sliced state.
struct Feature {
  int member = -1;  // of Config
  int64_t value = 0;
  std::vector<WorkGroup> step = {};  // also a group of an overlap as if it were a step
  bool in_overlap = false;
  std::string sliced_state = "";
  auto operator<=>(const Feature&) const = default;
};

/// The features of a variant whose schedule has that outline.
std::set<Feature> FeaturesOf(const Variant& variant, const Outline& outline) {
  std::set<Feature> features;
  const auto values = ValuesOf(variant.config), usual = ValuesOf(Config());
  for (size_t m = 0; m < values.size(); ++m) {
    if (m < kUsuallySet || values[m] != usual[m])
      features.insert({.member = static_cast<int>(m), .value = values[m]});
  }
  for (const std::vector<WorkGroup>& step : outline.steps) {
    features.insert({.step = step});
    if (step.size() == 1) continue;
    for (const WorkGroup& group : step) {
      features.insert({.step = {group}});
      features.insert({.step = {group}, .in_overlap = true});
    }
  }
  for (const std::string& name : outline.sliced_states) features.insert({.sliced_state = name});
  return features;
}

}  // namespace

std::vector<std::vector<int>> FeaturesOf(absl::Span<const Variant> variants) {
  std::map<Feature, int> numbers;
  std::vector<std::vector<int>> all;
  const Variant* previous = nullptr;
  Outline outline;  // of its schedule
  for (const Variant& variant : variants) {
    if (previous == nullptr || !SameSchedule(*previous, variant))
      outline = OutlineOf(variant.schedule);
    previous = &variant;
    std::vector<int>& features = all.emplace_back();
    for (const Feature& feature : FeaturesOf(variant, outline))
      features.push_back(
          numbers.try_emplace(feature, static_cast<int>(numbers.size())).first->second);
  }
  return all;
}

Forecast::Forecast(std::vector<std::vector<int>> features, std::vector<double> prior_us)
    : features_(std::move(features)),
      prior_log_us_(features_.size(), 0),
      log_us_(features_.size(), std::numeric_limits<double>::quiet_NaN()) {
  for (size_t v = 0; v < prior_us.size(); ++v)
    prior_log_us_[v] = std::log(std::max(prior_us[v], kLeastUs));
  for (const std::vector<int>& of_variant : features_) {
    for (int feature : of_variant) feature_count_ = std::max(feature_count_, feature + 1);
  }
}

void Forecast::Add(int variant, double us) { log_us_[variant] = std::log(std::max(us, kLeastUs)); }

Forecast::Fit Forecast::Fitted() const {
  Fit fit{0, std::vector<double>(feature_count_), std::vector<int>(feature_count_)};
  std::vector<std::vector<int>> having(feature_count_);
  std::vector<double> residual = log_us_;  // of the prior; then also of what is fitted
  for (size_t v = 0; v < features_.size(); ++v) residual[v] -= prior_log_us_[v];
  int timed = 0;
  for (size_t v = 0; v < features_.size(); ++v) {
    if (std::isnan(log_us_[v])) continue;
    ++timed;
    fit.mean += residual[v];
    for (int feature : features_[v]) having[feature].push_back(static_cast<int>(v));
  }
  if (timed > 0) fit.mean /= timed;
  for (double& r : residual) r -= fit.mean;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (int feature = 0; feature < feature_count_; ++feature) {
      double sum = 0;
      for (int v : having[feature]) sum += residual[v] + fit.weight[feature];
      const double weight = sum / (static_cast<double>(having[feature].size()) + kRidge);
      for (int v : having[feature]) residual[v] += fit.weight[feature] - weight;
      fit.weight[feature] = weight;
    }
  }
  for (int feature = 0; feature < feature_count_; ++feature)
    fit.count[feature] = static_cast<int>(having[feature].size());
  return fit;
}

double Forecast::LogUs(int variant, const Fit& fit) const {
  double log_us = prior_log_us_[variant] + fit.mean;
  for (int feature : features_[variant]) log_us += fit.weight[feature];
  return log_us;
}

double Forecast::Promise(int variant, const Fit& fit) const {
  double unknown = 0;
  for (int feature : features_[variant]) unknown += 1.0 / (1 + fit.count[feature]);
  return LogUs(variant, fit) -
         kCuriosity * unknown / static_cast<double>(features_[variant].size());
}

bool Forecast::AnyBelow(const std::vector<int>& candidates, double us) const {
  const Fit fit = Fitted();
  return absl::c_any_of(candidates, [&](int v) { return LogUs(v, fit) < std::log(us); });
}

std::vector<int> Forecast::MostPromising(const std::vector<int>& candidates, size_t most) const {
  Fit fit = Fitted();
  std::vector<int> chosen;
  std::vector<bool> taken(features_.size());
  while (chosen.size() < std::min(most, candidates.size())) {
    int best = -1;
    double least = 0;
    for (int v : candidates) {
      if (taken[v]) continue;
      const double promise = Promise(v, fit);
      if (best >= 0 && (promise > least || (promise == least && v < best))) continue;
      best = v;
      least = promise;
    }
    taken[best] = true;
    chosen.push_back(best);
    for (int feature : features_[best]) ++fit.count[feature];
  }
  return chosen;
}

}  // namespace coconet
