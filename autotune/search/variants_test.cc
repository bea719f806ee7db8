#include "autotune/search/variants.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/schedule/describe.h"
#include "coconet/workloads/training_steps.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/lower/lower.h"

namespace coconet {
namespace {

Graph Adam(int64_t n) { return *BindSizes(*MakeWorkload("adam"), {{"N", n}}); }

TEST(EnumerateVariants, AreDistinctAndHaveABaseline) {
  const absl::StatusOr<VariantSet> set = EnumerateVariants(Adam(1 << 24), {.ranks = 2, .cores = 2});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_GT(set->variants.size(), 50u);
  std::set<std::string> seen;
  for (const Variant& v : set->variants)
    EXPECT_TRUE(seen.insert(Print(v.schedule) + Text(v.config)).second);
  const Variant& baseline = set->variants[set->baseline];
  EXPECT_EQ(Describe(baseline).schedule, "AR; fuse(C)");
  EXPECT_EQ(baseline.config.protocol, Protocol::kLibrary);
  EXPECT_EQ(baseline.config.streaming, Streaming::kNone);
}

TEST(EnumerateVariants, GroupsShareScheduleAndProtocol) {
  const absl::StatusOr<VariantSet> set = EnumerateVariants(Adam(1 << 24), {.ranks = 2, .cores = 2});
  ASSERT_TRUE(set.ok());
  for (size_t i = 1; i < set->variants.size(); ++i) {
    const Variant &a = set->variants[i - 1], &b = set->variants[i];
    const bool alike =
        Print(a.schedule) == Print(b.schedule) && a.config.protocol == b.config.protocol;
    EXPECT_EQ(a.group == b.group, alike);
  }
}

std::vector<Buffer> BuffersOfValues(const Variant& variant) {
  std::vector<Buffer> buffers = LowerVariant(variant, {2, 2})->plan.buffers;
  std::erase_if(buffers, [](const Buffer& b) { return b.role == BufferRole::kSync; });
  return buffers;
}

TEST(EnumerateVariants, GroupsShareBuffers) {
  const Graph step = MlpStep({.layers = 3, .width = 600}).value();
  const ConfigSpace space{.ranks = 2, .nodes = 2, .cores = 2};
  const absl::StatusOr<VariantSet> set = EnumerateVariants(step, space, nullptr, nullptr, true);
  ASSERT_TRUE(set.ok()) << set.status();
  int concurrent = 0, buckets = 0;
  for (size_t i = 0; i < set->variants.size(); ++i) {
    const Variant& b = set->variants[i];
    concurrent += b.config.concurrent;
    buckets += b.config.bucket > 0;
    if (i == 0 || set->variants[i - 1].group != b.group) continue;
    EXPECT_TRUE(BuffersOfValues(set->variants[i - 1]) == BuffersOfValues(b))
        << Text(set->variants[i - 1].config) << "\n"
        << Text(b.config);
  }
  EXPECT_GT(buckets, 0);
  EXPECT_GT(concurrent, buckets);
  EXPECT_LT(concurrent, static_cast<int>(set->variants.size()));
}

TEST(EnumerateVariants, SaysWhyNoneIsLeft) {
  const auto message = [](const ConfigSpace& space, const std::string& words) {
    return std::string(
        EnumerateVariants(Adam(1000), space,
                          [&](const Schedule& s, const Config&) { return Describe(s) == words; })
            .status()
            .message());
  };
  EXPECT_THAT(message({.ranks = 2}, "fused"),
              testing::HasSubstr(" schedules is wanted (SessionOptions::admits, --only); the first "
                                 "is \"AR; C\", the last \""));
  EXPECT_THAT(message({.ranks = 2, .nodes = 2}, "fuse(AR, C)"),
              testing::StartsWith("tune adam: none of 1 schedules that are wanted, of "));
}

TEST(EnumerateVariants, SumsInRankOrderExcludeTheLibrary) {
  const absl::StatusOr<VariantSet> set =
      EnumerateVariants(Adam(1000), {.ranks = 2, .library = false});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(Describe(set->variants[set->baseline]).schedule, "AR; fuse(C)");
  EXPECT_EQ(set->variants[set->baseline].config.protocol, Protocol::kGenerated);
}

TEST(EnumerateVariants, SplitsByNodeWhereThereAreSeveralNodesOfSeveralRanks) {
  const auto split = [](const ConfigSpace& space) {
    const VariantSet set = EnumerateVariants(Adam(1000), space).value();
    return std::count_if(set.variants.begin(), set.variants.end(), [](const Variant& v) {
      return absl::StrContains(Describe(v).schedule, "(node)");
    });
  };
  EXPECT_GT(split({.ranks = 4, .nodes = 2}), 0);
  EXPECT_EQ(split({.ranks = 4}), 0);
  EXPECT_EQ(split({.ranks = 2, .nodes = 2}), 0);
}

TEST(EnumerateVariants, RefusesAProgramForSeveralNodesOnOne) {
  const Graph program = *Parse(
      "coconet 1\nprogram p\ninput g : f32[8] local\n"
      "output y = all_gather(all_reduce(sum, reduce_scatter(sum, g, 0, node), across), node)\n");
  EXPECT_EQ(EnumerateVariants(program, {.ranks = 2}).status().message(),
            "tune p: reduce_scatter(sum, g, 0, node) is for several nodes, and there is one; "
            "leave the last word out, as schedules find it");
  EXPECT_TRUE(EnumerateVariants(program, {.ranks = 4, .nodes = 2}).ok());
}

TEST(DigestOf, NamesTheList) {
  const ConfigSpace two{.ranks = 2}, three{.ranks = 3, .cores = 8};
  EXPECT_EQ(DigestOf(*EnumerateVariants(Adam(1000), two)),
            DigestOf(*EnumerateVariants(Adam(1000), two)));
  EXPECT_NE(DigestOf(*EnumerateVariants(Adam(1000), two)),
            DigestOf(*EnumerateVariants(Adam(1 << 24), three)));
}

}  // namespace
}  // namespace coconet
