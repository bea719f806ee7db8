#include "autotune/search/strategy.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "autotune/search/forecast.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr size_t kMostForRacing = 64, kMostForModel = 16384;
constexpr size_t kParents = 8;  // the fastest, of which evolution mixes two at a time

class AsListed final : public Strategy {
 public:
  void Add(int /*variant*/, double /*us*/) override {}
  std::vector<int> Next(const std::vector<int>& untried, size_t most) override {
    return {untried.begin(),
            untried.begin() + static_cast<int64_t>(std::min(most, untried.size()))};
  }
  bool Promises(const std::vector<int>& untried, double /*us*/) const override {
    return !untried.empty();
  }
};

/// By forecast. `all`: every variant promises.
class ByForecast final : public Strategy {
 public:
  ByForecast(std::vector<std::vector<int>> features, std::vector<double> prior_us, bool all)
      : forecast_(std::move(features), std::move(prior_us)), all_(all) {}
  void Add(int variant, double us) override { forecast_.Add(variant, us); }
  std::vector<int> Next(const std::vector<int>& untried, size_t most) override {
    return forecast_.MostPromising(untried, most);
  }
  bool Promises(const std::vector<int>& untried, double us) const override {
    return all_ ? !untried.empty() : forecast_.AnyBelow(untried, us);
  }

 private:
  Forecast forecast_;
  const bool all_;
};

/// Next tries what is most like a mixture of two fast variants with one feature changed. A genetic
/// algorithm whose population is the fastest of all that were tried.
class Evolution final : public Strategy {
 public:
  Evolution(std::vector<std::vector<int>> features, uint64_t seed)
      : features_(std::move(features)), random_(seed) {}

  void Add(int variant, double us) override { us_[variant] = us; }

  std::vector<int> Next(const std::vector<int>& untried, size_t most) override {
    std::vector<int> chosen;
    std::set<int> left(untried.begin(), untried.end());
    while (chosen.size() < most && !left.empty()) {
      const int child = MostAlike(Mixture(), left);
      left.erase(child);
      chosen.push_back(child);
    }
    return chosen;
  }

  bool Promises(const std::vector<int>& untried, double /*us*/) const override {
    return !untried.empty();
  }

 private:
  size_t Draw(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }

  std::vector<int> Parents() const {
    std::vector<std::pair<double, int>> fastest;
    for (const auto& [variant, us] : us_) fastest.emplace_back(us, variant);
    std::sort(fastest.begin(), fastest.end());
    std::vector<int> parents;
    for (size_t i = 0; i < std::min(kParents, fastest.size()); ++i)
      parents.push_back(fastest[i].second);
    return parents;
  }

  /// Half of the features that only one of two parents has; and one feature of any variant.
  std::set<int> Mixture() {
    const std::vector<int> parents = Parents();
    std::set<int> mixture;
    if (!parents.empty()) {
      const std::vector<int>& a = features_[parents[Draw(parents.size())]];
      const std::vector<int>& b = features_[parents[Draw(parents.size())]];
      for (const std::vector<int>* parent : {&a, &b}) {
        const std::vector<int>& other = parent == &a ? b : a;
        for (int feature : *parent) {
          if (absl::c_linear_search(other, feature) || Draw(2) == 0) mixture.insert(feature);
        }
      }
    }
    const std::vector<int>& any = features_[Draw(features_.size())];
    if (!mixture.empty() && Draw(2) == 0)
      mixture.erase(std::next(mixture.begin(), static_cast<int64_t>(Draw(mixture.size()))));
    if (!any.empty()) mixture.insert(any[Draw(any.size())]);
    return mixture;
  }

  /// By the share of common features (Jaccard).
  int MostAlike(const std::set<int>& mixture, const std::set<int>& among) const {
    int best = *among.begin();
    double most = -1;
    for (int v : among) {
      const auto common = static_cast<double>(
          absl::c_count_if(features_[v], [&](int feature) { return mixture.contains(feature); }));
      const double all = static_cast<double>(features_[v].size() + mixture.size()) - common;
      if (const double share = all > 0 ? common / all : 0; share > most) {
        most = share;
        best = v;
      }
    }
    return best;
  }

  const std::vector<std::vector<int>> features_;
  std::map<int, double> us_;
  std::mt19937_64 random_;
};

}  // namespace

absl::string_view Name(SearchKind kind) {
  switch (kind) {
    case SearchKind::kAuto:
      return "auto";
    case SearchKind::kExhaustive:
      return "exhaustive";
    case SearchKind::kRacing:
      return "racing";
    case SearchKind::kModel:
      return "model";
    case SearchKind::kEvolution:
      return "evolution";
  }
  CC_CHECK(false);
  return "";
}

std::optional<SearchKind> ParseSearchKind(absl::string_view name) {
  for (SearchKind kind : kAllSearchKinds) {
    if (Name(kind) == name) return kind;
  }
  return std::nullopt;
}

SearchKind KindFor(SearchKind kind, size_t variants) {
  if (kind != SearchKind::kAuto) return kind;
  return variants <= kMostForRacing  ? SearchKind::kRacing
         : variants <= kMostForModel ? SearchKind::kModel
                                     : SearchKind::kEvolution;
}

std::unique_ptr<Strategy> MakeStrategy(SearchKind kind, std::vector<std::vector<int>> features,
                                       uint64_t seed, std::vector<double> prior_us) {
  switch (kind) {
    case SearchKind::kExhaustive:
      return std::make_unique<AsListed>();
    case SearchKind::kEvolution:
      return std::make_unique<Evolution>(std::move(features), seed);
    case SearchKind::kAuto:
    case SearchKind::kRacing:
    case SearchKind::kModel:
      return std::make_unique<ByForecast>(std::move(features), std::move(prior_us),
                                          kind != SearchKind::kModel);
  }
  CC_CHECK(false);
  return nullptr;
}

}  // namespace coconet
