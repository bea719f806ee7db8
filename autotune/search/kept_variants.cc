#include "autotune/search/kept_variants.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "autotune/prior/schedule_prior.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// The variants with the least expected times that are kept even if PriorRates::hopeless leaves
/// them out, so that one wrong expectation cannot leave nearly nothing.
constexpr size_t kAlwaysKept = 32;

/// Calls f(begin, end) for the variants of each schedule.
template <class F>
void ForSchedules(const std::vector<Variant>& variants, F f) {
  for (size_t begin = 0, end = 0; begin < variants.size(); begin = end) {
    while (end < variants.size() && SameSchedule(variants[begin], variants[end])) ++end;
    f(begin, end);
  }
}

}  // namespace

void ExpectTimes(const ConfigSpace& space, VariantSet& set) {
  ForSchedules(set.variants, [&](size_t begin, size_t end) {
    const SchedulePrior prior(set.variants[begin].schedule, space);
    for (size_t v = begin; v < end; ++v)
      set.variants[v].prior_us = prior.Us(set.variants[v].config);
  });
}

std::vector<int> KeptVariants(const ConfigSpace& space, const VariantSet& set,
                              absl::Span<const int> always, size_t most) {
  std::set<int> kept(always.begin(), always.end());
  double longest_us = std::numeric_limits<double>::infinity();
  std::vector<std::pair<double, int>> few;  // expected times of the kept configs, and variants
  if (const double hopeless = PriorRatesFor(space).hopeless; hopeless > 0) {
    for (const Variant& v : set.variants) longest_us = std::min(longest_us, hopeless * v.prior_us);
  }
  ForSchedules(set.variants, [&](size_t begin, size_t end) {
    std::vector<Config> configs;
    std::vector<double> prior_us;
    for (size_t v = begin; v < end; ++v) {
      configs.push_back(set.variants[v].config);
      prior_us.push_back(set.variants[v].prior_us);
    }
    for (int config : KeptConfigs(configs, prior_us, most))
      few.emplace_back(prior_us[config], static_cast<int>(begin) + config);
  });
  absl::c_sort(few);
  for (size_t i = 0; i < few.size(); ++i) {
    if (i < kAlwaysKept || few[i].first <= longest_us) kept.insert(few[i].second);
  }
  return {kept.begin(), kept.end()};
}

VariantSet OnlyKept(VariantSet set, absl::Span<const int> kept, std::vector<int>& followed) {
  const auto number = [&](int variant) {
    const auto at = absl::c_lower_bound(kept, variant);
    CC_CHECK(at != kept.end() && *at == variant);
    return static_cast<int>(at - kept.begin());
  };
  VariantSet only;
  only.baseline = number(set.baseline);
  for (int& variant : followed) variant = number(variant);
  only.left_out = set.left_out + static_cast<int>(set.variants.size() - kept.size());
  for (int variant : kept) only.variants.push_back(std::move(set.variants[variant]));
  return only;
}

}  // namespace coconet
