#include "autotune/search/variants.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/schedule/describe.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/lower/lower.h"

namespace coconet {
namespace {

Graph Bound(absl::string_view text, const Sizes& sizes) {
  const absl::StatusOr<Graph> parsed = Parse(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  const absl::StatusOr<Graph> bound = BindSizes(*parsed, sizes);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return *bound;
}

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

TEST(EnumerateVariants, SaysWhyNoneIsLeft) {
  const auto message = [](const ConfigSpace& space, const std::string& words) {
    return std::string(EnumerateVariants(Adam(1000), space,
                                         [&](const Schedule& s) { return Describe(s) == words; })
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
            "tune p: %1 = reduce_scatter(sum, g, 0, node) is for several nodes, and there is one; "
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

TEST(Shrink, KeepsWhatEqualsAndWhatBroadcasts) {
  const Graph g = Bound(
      "coconet 1\nprogram p\ninput a : f32[B, N] local\ninput b : f32[1, N] replicated\nstate c : "
      "f32[N] replicated\n"
      "output o = all_reduce(sum, a) * b + c\n",
      {{"B", 2000}, {"N", 3000}});
  const Graph small = Shrink(g);
  const Shape a = std::get<Input>(small.nodes[0].op).type.shape,
              b = std::get<Input>(small.nodes[1].op).type.shape;
  EXPECT_EQ(b[0].size, 1);
  EXPECT_EQ(a[1].size, b[1].size);
  EXPECT_EQ(std::get<State>(small.nodes[2].op).type.shape[0].size, a[1].size);
  EXPECT_NE(a[0].size, a[1].size);
  EXPECT_EQ(a[0].size % 2, 1);
  EXPECT_EQ(a[1].size % 2, 1);
  EXPECT_LE(a[0].size * a[1].size, 20000);
  EXPECT_GE(a[0].size * a[1].size, 5000);
}

TEST(Shrink, LeavesTheTinyAlone) {
  for (int64_t n : {0, 1, 2, 999}) EXPECT_TRUE(Shrink(Adam(n)) == Adam(n)) << n;
  EXPECT_EQ(std::get<Input>(Shrink(Adam(1000)).nodes[0].op).type.shape[0].size, 999);
}

TEST(Shrink, CanTakeMultiples) {
  const Graph g =
      Bound("coconet 1\nprogram p\ninput a : f32[B, N] local\noutput o = all_reduce(sum, a)\n",
            {{"B", 2000}, {"N", 7}});
  const Shape a = std::get<Input>(Shrink(g, {.multiple = 64}).nodes[0].op).type.shape;
  EXPECT_EQ(a[0].size % 128, 64);
  EXPECT_LE(a[0].size, 200);
  EXPECT_EQ(a[1].size, 7);
  EXPECT_TRUE(Shrink(Adam(5), {.multiple = 8}) == Adam(5));
}

TEST(Shrink, TakesAFewTensorsOfAList) {
  std::vector<int64_t> sizes(50, 1 << 20);
  sizes[3] = 1;
  sizes[7] = 12345;
  const Graph small = Shrink(*BindSizes(*MakeWorkload("adam"), {{"N", sizes}}));
  EXPECT_THAT(small.lists.at("N"), testing::ElementsAre(10005, 1, 10007, 10005));
  EXPECT_TRUE(CheckLists(small).ok());
}

/// What makes the check at a small size worth something: the very same kernels.
TEST(Shrink, GivesTheSameKernels) {
  for (const Graph& adam :
       {Adam(1 << 24), *BindSizes(*MakeWorkload("adam"), {{"N", {1 << 24, 1000, 1 << 20}}})}) {
    const absl::StatusOr<VariantSet> set = EnumerateVariants(adam, {.ranks = 2, .cores = 2});
    ASSERT_TRUE(set.ok());
    for (const Variant& v : set->variants) {
      const Schedule small = v.schedule.Resized(*TypedGraph::Of(Shrink(v.schedule.graph())));
      EXPECT_EQ(Lower(v.schedule, v.config, 2)->source, Lower(small, v.config, 2)->source)
          << Describe(v).schedule;
    }
  }
}

}  // namespace
}  // namespace coconet
