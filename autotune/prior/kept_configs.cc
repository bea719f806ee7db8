#include "autotune/prior/kept_configs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "autotune/prior/config_values.h"

namespace coconet {
namespace {

/// What values that no config has that is kept are worth, in logarithms of the expected time: about
/// as much as the prior is often wrong by. The first such value of a config, and each further one.
constexpr double kNovelty = 0.3, kFurther = 0.05;

using Values = std::array<int64_t, kConfigMembers>;

/// With a chunk as the passes that a block makes over it, which the shapes of launches vary.
Values ValuesOfKept(Config config) {
  config.chunk /= std::max<int64_t>(int64_t{config.vec} * config.unroll * config.threads, 1);
  return ValuesOf(config);
}

/// The values, by member of Config, of the configs that are kept.
class SeenValues {
 public:
  void Add(const Values& values) {
    for (size_t m = 0; m < kConfigMembers; ++m) {
      if (!absl::c_linear_search(seen_[m], values[m])) seen_[m].push_back(values[m]);
    }
  }
  /// How many values of a config are none of these.
  int NewOf(const Values& values) const {
    int fresh = 0;
    for (size_t m = 0; m < kConfigMembers; ++m)
      fresh += absl::c_linear_search(seen_[m], values[m]) ? 0 : 1;
    return fresh;
  }

 private:
  std::array<std::vector<int64_t>, kConfigMembers> seen_;
};

}  // namespace

std::vector<int> KeptConfigs(absl::Span<const Config> configs, absl::Span<const double> prior_us,
                             size_t most) {
  std::vector<int> kept;
  if (configs.size() <= most) {
    kept.resize(configs.size());
    absl::c_iota(kept, 0);
    return kept;
  }
  std::vector<Values> values;
  for (const Config& config : configs) values.push_back(ValuesOfKept(config));
  SeenValues seen;
  std::vector<bool> taken(configs.size());
  while (kept.size() < most) {
    int best = -1;
    double least = 0;
    for (size_t c = 0; c < configs.size(); ++c) {
      if (taken[c]) continue;
      double worth = std::log(std::max(prior_us[c], 1e-6));
      if (const int fresh = seen.NewOf(values[c]); fresh > 0 && !kept.empty())
        worth -= kNovelty + kFurther * (fresh - 1);
      if (best >= 0 && worth >= least) continue;
      best = static_cast<int>(c);
      least = worth;
    }
    taken[best] = true;
    kept.push_back(best);
    seen.Add(values[best]);
  }
  absl::c_sort(kept);
  return kept;
}

}  // namespace coconet
