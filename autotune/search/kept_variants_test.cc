#include "autotune/search/kept_variants.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/algorithm/container.h"
#include "autotune/prior/prior_rates.h"
#include "coconet/ir/infer.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::Contains;

constexpr ConfigSpace kHalfAnH200 = {.ranks = 2, .multiprocessors = 66, .library = false};

VariantSet AdamOnGpus() {
  const Graph adam = *BindSizes(*MakeWorkload("adam"), {{"N", 1 << 24}});
  VariantSet set = EnumerateVariants(adam, kHalfAnH200).value();
  ExpectTimes(kHalfAnH200, set);
  return set;
}

TEST(KeptVariants, AreAFewOfEachSchedule) {
  const VariantSet set = AdamOnGpus();
  std::map<std::string, int> all, kept;
  for (const Variant& v : set.variants) ++all[TraceOf(v)];
  for (int v : KeptVariants(kHalfAnH200, set, {})) ++kept[TraceOf(set.variants[v])];
  EXPECT_EQ(kept.size(), all.size()) << "no schedule is left out";
  for (const auto& [trace, count] : kept)
    EXPECT_EQ(count, std::min(all[trace], static_cast<int>(kKeptConfigs))) << trace;
}

TEST(KeptVariants, AreNoHopelessOnesOnHosts) {
  constexpr ConfigSpace kHost = {.ranks = 2, .cores = 2};
  const Graph adam = *BindSizes(*MakeWorkload("adam"), {{"N", 1 << 24}});
  VariantSet set = EnumerateVariants(adam, kHost).value();
  ExpectTimes(kHost, set);
  const std::vector<int> kept = KeptVariants(kHost, set, {});
  const double hopeless = PriorRatesFor(kHost).hopeless;
  double least = set.variants[0].prior_us, longest = 0;
  for (const Variant& v : set.variants) {
    least = std::min(least, v.prior_us);
    longest = std::max(longest, v.prior_us);
  }
  ASSERT_GT(longest, hopeless * least) << "some are hopeless";
  const int64_t long_ones =
      absl::c_count_if(kept, [&](int v) { return set.variants[v].prior_us > hopeless * least; });
  EXPECT_EQ(long_ones > 0, kept.size() <= 32);
  EXPECT_GE(kept.size(), 32);
}

TEST(KeptVariants, HaveThoseThatAreAskedFor) {
  const VariantSet set = AdamOnGpus();
  const int last = static_cast<int>(set.variants.size()) - 1;
  const std::vector<int> kept = KeptVariants(kHalfAnH200, set, {set.baseline, last});
  EXPECT_THAT(kept, Contains(set.baseline));
  EXPECT_THAT(kept, Contains(last));
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
}

TEST(KeptVariants, HaveTheOneThatIsExpectedToBeFastest) {
  const VariantSet set = AdamOnGpus();
  const auto best =
      std::min_element(set.variants.begin(), set.variants.end(),
                       [](const Variant& a, const Variant& b) { return a.prior_us < b.prior_us; });
  EXPECT_THAT(KeptVariants(kHalfAnH200, set, {}), Contains(best - set.variants.begin()));
}

TEST(OnlyKept, RenumbersAndCountsTheRest) {
  const VariantSet set = AdamOnGpus();
  const int last = static_cast<int>(set.variants.size()) - 1;
  std::vector<int> kept = KeptVariants(kHalfAnH200, set, {set.baseline, last}),
                   followed = {last, set.baseline};
  const VariantSet only = OnlyKept(set, kept, followed);
  EXPECT_EQ(only.variants.size(), kept.size());
  EXPECT_EQ(only.left_out, static_cast<int>(set.variants.size() - kept.size()));
  EXPECT_EQ(TraceOf(only.variants[only.baseline]), TraceOf(set.variants[set.baseline]));
  EXPECT_EQ(followed[0], static_cast<int>(kept.size()) - 1);
  EXPECT_EQ(followed[1], only.baseline);
  for (size_t v = 0; v < kept.size(); ++v)
    EXPECT_TRUE(only.variants[v].config == set.variants[kept[v]].config);
}

}  // namespace
}  // namespace coconet
