#include "autotune/prior/schedule_prior.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "coconet/ir/infer.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr ConfigSpace kHalfAnH200 = {.ranks = 2, .multiprocessors = 66, .library = false};

Graph Adam(int64_t n) {
  return *BindSizes(*MakeWorkload("adam", {.dtype = DType::kBF16}), {{"N", n}});
}

Schedule ScheduleNamed(const Graph& program, const std::string& words) {
  const std::vector<Schedule> schedules = Derive(program).value();
  const auto at = std::find_if(schedules.begin(), schedules.end(), [&](const Schedule& s) {
    return absl::StartsWith(Describe(s), words);
  });
  EXPECT_NE(at, schedules.end()) << words;
  return *at;
}

TEST(SchedulePrior, CountsWhatOneRankDoes) {
  constexpr int64_t kN = 1 << 20;
  const Schedule s = ScheduleNamed(Adam(kN), "fuse(RS, C, AG); slice w m v");
  const SchedulePrior prior(s, kHalfAnH200);
  ASSERT_THAT(prior.launches(), testing::SizeIs(1));
  const LaunchTraits& launch = prior.launches()[0];
  EXPECT_EQ(launch.elements, kN / 2);
  // The gradients of two ranks in bf16; moments and weights in f32.
  EXPECT_EQ(launch.loaded, 2 * 2 + 3 * 4);
  EXPECT_EQ(launch.meetings, 2);
  EXPECT_NEAR(launch.read, kN * 2.0 + kN / 2 * 12.0, 64) << "and a few scalars";
}

TEST(SchedulePrior, ExpectsMoreBytesInFlightToTakeLess) {
  const Schedule s = ScheduleNamed(Adam(1 << 28), "fuse(RS, C, AG); slice w m v");
  const SchedulePrior prior(s, kHalfAnH200);
  const auto us = [&](int vec, int blocks, int threads) {
    return prior.Us({.protocol = Protocol::kGenerated,
                     .vec = vec,
                     .chunk = int64_t{64} * vec * threads,
                     .blocks = blocks,
                     .threads = threads});
  };
  EXPECT_LT(us(4, 2 * 66, 256), us(4, 66, 256));
  EXPECT_LT(us(4, 2 * 66, 512), us(4, 2 * 66, 256));
  EXPECT_LT(us(4, 66, 256), us(4, 66 / 2, 256));
}

TEST(SchedulePrior, ExpectsAKernelThatGoesOnWithAProductToSaveItsTraffic) {
  const absl::StatusOr<Graph> program = Parse(R"(coconet 1
program epilogue
input a : bf16[4096, 1536] replicated
input b : bf16[1536, 12288] replicated
input r : bf16[4096, 12288] replicated
output c = max(matmul(a, b), 0) + r
)");
  ASSERT_TRUE(program.ok()) << program.status();
  const Graph graph = Canonicalize(*program).graph;
  const Schedule fused_by = ScheduleNamed(graph, "fuse(MM, C)"),
                 unfused_by = ScheduleNamed(graph, "MM; fuse(C)");
  const SchedulePrior fused(fused_by, kHalfAnH200), unfused(unfused_by, kHalfAnH200);
  const Config warps{
      .protocol = Protocol::kGenerated, .vec = 8, .blocks = 66, .threads = 512, .tiles = 128};
  Config warp_groups = warps, tma = warps;
  warp_groups.tile_columns = tma.tile_columns = 256;
  warp_groups.stages = tma.stages = 4;
  tma.tma = true;
  EXPECT_LT(fused.Us(tma), fused.Us(warp_groups));
  EXPECT_LT(fused.Us(warp_groups), fused.Us(warps));
  EXPECT_LT(fused.Us(tma), unfused.Us(warps)) << "whose product a library makes";
}

TEST(SchedulePrior, ExpectsSumsBesideAKernelThatGoesOnWithAProductToBeHidden) {
  const absl::StatusOr<Graph> program = Parse(R"(coconet 1
program activation
input a : bf16[4096, 1536] local
input b : bf16[1536, 12288] local
output c = all_reduce(sum, max(matmul(a, b), 0))
)");
  ASSERT_TRUE(program.ok()) << program.status();
  const Graph graph = Canonicalize(*program).graph;
  const Schedule beside_by = ScheduleNamed(graph, "ol(fuse(MM, C), fuse(RS[0], AG))"),
                 apart_by = ScheduleNamed(graph, "fuse(MM, C); fuse(RS[0], AG)");
  const SchedulePrior beside(beside_by, kHalfAnH200), apart(apart_by, kHalfAnH200);
  Config config{.protocol = Protocol::kGenerated,
                .vec = 8,
                .blocks = 66,
                .threads = 512,
                .tiles = 128,
                .tile_columns = 256,
                .stages = 4,
                .tma = true};
  const double one_after_the_other = apart.Us(config);
  config.blocks = 58;
  config.beside = 8;
  EXPECT_LT(beside.Us(config), one_after_the_other);
  EXPECT_GT(beside.Us(config), 0.5 * one_after_the_other);
}

TEST(SchedulePrior, NamesWhatLimitsBytesInFlight) {
  const PriorRates rates = PriorRatesFor(kHalfAnH200);
  const LaunchTraits launch{.elements = 1 << 28, .loaded = 16};
  const auto limit = [&](const LaunchTraits& of, int blocks, int threads, int vec) {
    return InFlightOf(of, {.vec = vec, .blocks = blocks, .threads = threads}, rates).limit;
  };
  EXPECT_EQ(limit(launch, 66, 256, 4), "blocks");
  EXPECT_EQ(limit(launch, 16 * 66, 256, 4), "registers");
  EXPECT_EQ(limit({.elements = 1 << 28, .loaded = 1}, 32 * 66, 256, 1), "registers");
  EXPECT_EQ(limit({.elements = 1000, .loaded = 16}, 66, 256, 4), "elements");
  EXPECT_EQ(InFlightOf(launch, {.vec = 4, .blocks = 132, .threads = 256}, rates).bytes,
            2 * 256 * 64);
}

TEST(SchedulePrior, ExpectsStreamingToPayOnlyOutOfTheCache) {
  const ConfigSpace host{.ranks = 2, .cores = 2};
  for (const bool is_large : {false, true}) {
    const Graph program = Adam(is_large ? int64_t{1} << 28 : 1 << 16);
    const SchedulePrior prior(ScheduleNamed(program, "AR; fuse(C)"), host);
    const double none = prior.Us({}), all = prior.Us({.streaming = Streaming::kAll});
    EXPECT_EQ(all < none, is_large);
  }
}

}  // namespace
}  // namespace coconet
