#include "jit/config/config.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "coconet/language/text.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/schedule/describe.h"
#include "coconet/testing/find_schedule.h"
#include "coconet/workloads/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

Graph Adam(int64_t n) { return BindSizes(MakeWorkload("adam").value(), {{"N", n}}).value(); }

TEST(Validate, RefusesNumbersOutOfRange) {
  const Schedule s = FindSchedule(Adam(1024), "AR; fuse(C)");
  const auto words = [&](Config config) {
    return std::string(Validate(config, s, {.ranks = 2}).message());
  };
  EXPECT_EQ(words({.vec = 12}),
            "config \"library vec=12 chunk=4096 blocks=1 stream=none one-shot=pull\": want vec a "
            "power of two in 1..64");
  EXPECT_EQ(words({.vec = 16, .chunk = 8}),
            "config \"library vec=16 chunk=8 blocks=1 stream=none one-shot=pull\": want chunk a "
            "multiple of vec, at most 1073741824");
  EXPECT_EQ(words({.blocks = 0}),
            "config \"library vec=16 chunk=4096 blocks=0 stream=none one-shot=pull\": want blocks "
            "in 1..1024");
  for (int unroll : {0, 3, 32}) {
    EXPECT_THAT(words({.unroll = unroll}),
                testing::HasSubstr("want unroll a power of two in 1..16"));
  }
  EXPECT_EQ(words({}), "");
  EXPECT_EQ(words({.threads = 256, .unroll = 16}), "");
  for (int threads : {-1, 0, 31, 33, 544, 1 << 30}) {
    EXPECT_THAT(words({.threads = threads}),
                testing::HasSubstr("want threads a multiple of 32, at most 512"));
  }
}

TEST(Configs, OfGpusFillTheirMultiprocessorsAndNoMore) {
  const ConfigSpace space{.ranks = 2, .multiprocessors = 66};
  for (int64_t n : {1, 1000, 1 << 20, 1 << 28}) {
    for (absl::string_view words : {"AR; fuse(C)", "fuse(AR, C)", "fuse(RS, C, AG); slice m v"}) {
      const Schedule s = FindSchedule(Adam(n), words);
      std::set<std::string> seen;
      std::set<int> blocks;
      for (const Config& config : Configs(s, space)) {
        EXPECT_TRUE(Validate(config, s, space).ok()) << Text(config);
        EXPECT_TRUE(seen.insert(Text(config)).second) << Text(config);
        EXPECT_TRUE(config.chunk % (config.vec * config.threads) == 0)
            << Text(config) << ": threads without work";
        EXPECT_TRUE(config.blocks == 1 ||
                    int64_t{config.blocks - 1} * config.vec * config.threads < n)
            << Text(config) << ": blocks without work";
        blocks.insert(config.blocks);
      }
      EXPECT_GE(*blocks.begin(), n >= 1 << 20 ? 66 : 1);
      EXPECT_LE(*blocks.rbegin(), 4 * 66);
      EXPECT_EQ(blocks.count(4 * 66), n >= 1 << 20 ? 1u : 0u);
    }
  }
}

TEST(Validate, RefusesALibraryThatSumsInAnyOrder) {
  const ConfigSpace in_order{.ranks = 2, .library = false};
  EXPECT_EQ(Validate({}, FindSchedule(Adam(1024), "AR; fuse(C)"), in_order).message(),
            "config \"library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull\": no library "
            "collectives here: they sum in any order, or go by way of the host");
  EXPECT_TRUE(Validate({}, FindSchedule(Adam(1024), "fuse(AR, C)"), in_order).ok());
}

TEST(Validate, LeavesExchangesAcrossNodesToTheLibraryWhateverItSums) {
  const Graph program =
      *Parse("coconet 1\ninput x : f32[8, 8] sliced(0)\noutput y = all_to_all(x, 1)\n");
  const Schedule s = InitialSchedule(program).value();
  const ConfigSpace one_node{.ranks = 4, .library = false};
  EXPECT_FALSE(Validate({}, s, one_node).ok());
  EXPECT_TRUE(Validate({.protocol = Protocol::kGenerated}, s, one_node).ok());
  EXPECT_TRUE(Validate({}, s, {.ranks = 4, .nodes = 2, .library = false}).ok());
}

Graph Listed(absl::string_view workload, std::vector<int64_t> sizes) {
  return BindSizes(MakeWorkload(workload).value(), {{"N", std::move(sizes)}}).value();
}

TEST(Validate, RefusesBatchesOfWhatNeedsAllTensors) {
  const ConfigSpace space{.ranks = 2};
  const Config batches{.batch = 100};
  const std::string fused = "fuse(RS, C, fold, AR, C, AG); slice m v";
  EXPECT_TRUE(Validate(batches, FindSchedule(Listed("lamb", {100, 7}), fused), space).ok());
  for (const Schedule& s : {FindSchedule(Listed("clip", {100, 7}), fused),
                            FindSchedule(Listed("adam", {100, 7}), "fuse(RS, C, AG); slice m v"),
                            FindSchedule(Adam(107), "AR; fuse(C)")}) {
    EXPECT_EQ(Validate(batches, s, space).message(),
              "config \"library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull batch=100\": "
              "want batch=0 where no kernel sums up each tensor of a "
              "list and goes on with the sums");
  }
}

TEST(Configs, TryBatchesOfListsThatDoNotFitInCache) {
  const auto batches = [](const Graph& program) {
    std::set<int64_t> tried;
    for (const Config& config :
         Configs(FindSchedule(program, "fuse(RS, C, fold, AR, C, AG); slice m v"), {.ranks = 2}))
      tried.insert(config.batch);
    return tried.size();
  };
  EXPECT_EQ(batches(Listed("lamb", {1 << 22, 1 << 20})), 3u);
  EXPECT_EQ(batches(Listed("lamb", {1000, 10})), 1u);
  EXPECT_EQ(batches(Listed("clip", {1 << 22, 1 << 20})), 1u);
}

/// Derived for worlds of several nodes.
Schedule FindByNode(const Graph& program, absl::string_view words) {
  const std::vector<Schedule> schedules = Derive(program, {.by_node = true}).value();
  for (const Schedule& s : schedules) {
    if (Describe(s) == words) return s;
  }
  ADD_FAILURE() << "no schedule " << words;
  return {};
}

TEST(Validate, RefusesWhatDoesNotReachOtherNodes) {
  const ConfigSpace nodes{.ranks = 4, .nodes = 2};
  const auto words = [](const Config& config, const Schedule& s, const ConfigSpace& space) {
    const absl::Status status = Validate(config, s, space);
    return std::string(status.ok() ? ""
                                   : status.message().substr(status.message().find("\": ") + 3));
  };
  const Config generated{.protocol = Protocol::kGenerated};
  const Schedule whole = FindSchedule(Adam(1024), "AR; fuse(C)"),
                 by_node = FindByNode(Adam(1024), "RS(node); AR(across); AG(node); fuse(C)");
  EXPECT_EQ(words({}, whole, nodes), "");
  EXPECT_EQ(words(generated, whole, nodes), "kernels do not reach the ranks of other nodes");
  EXPECT_EQ(words({}, FindSchedule(Adam(1024), "fuse(AR, C)"), nodes),
            "kernels do not reach the ranks of other nodes");
  EXPECT_EQ(words({}, by_node, nodes), "");
  EXPECT_EQ(words(generated, by_node, nodes), "");
  EXPECT_EQ(words({}, by_node, {.ranks = 4}),
            "collectives are split by node, and there is one node");
  EXPECT_EQ(words(generated, by_node, {.ranks = 4, .nodes = 2, .library = false}),
            "no library collectives here: they sum in any order, or go by way of the host");
}

TEST(Configs, OfSchedulesByNodeAreDistinctAndLegal) {
  const ConfigSpace space{.ranks = 4, .nodes = 2, .cores = 2};
  size_t overlapped = 0;
  const std::vector<Schedule> schedules = Derive(Adam(1 << 20), {.by_node = true}).value();
  for (const Schedule& s : schedules) {
    std::set<std::string> seen;
    for (const Config& config : Configs(s, space)) {
      EXPECT_TRUE(Validate(config, s, space).ok()) << Text(config);
      EXPECT_TRUE(seen.insert(Text(config)).second) << Text(config);
    }
    EXPECT_FALSE(seen.empty()) << Describe(s);
    overlapped += !s.overlaps().empty();
  }
  EXPECT_GT(overlapped, 0u);
}

TEST(Validate, RefusesKernelsThatSendToStagesOnOtherNodes) {
  const Graph pipeline =
      BindSizes(MakeWorkload("pipeline").value(), {{"B", 1}, {"S", 8}, {"H", 16}}).value();
  const ConfigSpace apart{.ranks = 2, .stages_apart = true};
  const Schedule fused = FindSchedule(pipeline, "RS[1]; fuse(C, send[1]); AG y"),
                 unfused = FindSchedule(pipeline, "RS[1]; fuse(C); send[1]; AG y");
  EXPECT_EQ(Validate({}, fused, apart).message(),
            "config \"library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull\": kernels do "
            "not reach the stages on other nodes; a "
            "library sends to them");
  EXPECT_TRUE(Validate({}, fused, {.ranks = 2}).ok());
  EXPECT_TRUE(Validate({}, unfused, apart).ok());
  EXPECT_TRUE(Configs(fused, apart).empty());
  EXPECT_FALSE(Configs(fused, {.ranks = 2}).empty());
  EXPECT_FALSE(Configs(unfused, apart).empty());
}

TEST(Configs, AreDistinctAndLegalForEverySchedule) {
  const ConfigSpace space{.ranks = 2, .cores = 4};
  const std::vector<Schedule> schedules = Derive(Adam(16 << 20)).value();
  for (const Schedule& s : schedules) {
    std::set<std::string> seen;
    for (const Config& config : Configs(s, space)) {
      EXPECT_TRUE(Validate(config, s, space).ok()) << Text(config);
      EXPECT_TRUE(seen.insert(Text(config)).second) << Text(config);
    }
    EXPECT_EQ(seen.empty(), !s.overlaps().empty())
        << Describe(s);  // in one node nothing runs beside anything else
  }
}

bool Offers(OneShot one_shot, const Graph& program, const char* words, const ConfigSpace& space) {
  for (const Config& config : Configs(FindSchedule(program, words), space)) {
    if (config.one_shot == one_shot) return true;
  }
  return false;
}

TEST(Configs, StageSmallOperandsOfKernelsThatReduceThemWhole) {
  const auto stages = [](const Graph& program, const char* words, ConfigSpace space) {
    return Offers(OneShot::kStaged, program, words, space);
  };
  EXPECT_TRUE(stages(Adam(1024), "fuse(AR, C)", {.ranks = 2}));
  EXPECT_TRUE(stages(Adam(1024), "AR; fuse(C)", {.ranks = 2}));  // generated
  EXPECT_FALSE(stages(Adam(1024), "fuse(AR, C)", {.ranks = 1}));
  EXPECT_FALSE(stages(Adam(1024), "fuse(RS, C, AG); slice m v", {.ranks = 2}));
  EXPECT_FALSE(stages(Adam(1 << 20), "fuse(AR, C)", {.ranks = 2}));
  const Graph lamb = BindSizes(MakeWorkload("lamb").value(), {{"N", 1024}}).value();
  EXPECT_FALSE(stages(lamb, "fuse(RS, C, fold, AR, C, AG); slice m v", {.ranks = 2}))
      << "sums of its own folds are in no operand";
}

TEST(Configs, TryTheWaysOfAMatrixProductWhereThereIsOne) {
  const Graph product =
      BindSizes(MakeWorkload("attention").value(), {{"B", 1}, {"S", 64}, {"H", 128}, {"K", 256}})
          .value();
  const auto ways_in = [](const Graph& program, const ConfigSpace& space) {
    std::set<int> gemms;
    const std::vector<Schedule> schedules = Derive(program).value();
    for (const Schedule& s : schedules) {
      for (const Config& config : Configs(s, space)) {
        EXPECT_TRUE(Validate(config, s, space).ok()) << Text(config);
        gemms.insert(config.gemm);
      }
    }
    return gemms;
  };
  const auto ways = [&](const Graph& program, int candidates) {
    return ways_in(program, {.ranks = 2, .multiprocessors = 16, .gemm_candidates = candidates});
  };
  EXPECT_EQ(ways(product, 1), std::set<int>({0}));
  EXPECT_EQ(ways(product, 3), std::set<int>({0, 1, 2}));
  EXPECT_EQ(ways(product, 100).size(), 16u);
  EXPECT_EQ(ways(Adam(1024), 3), std::set<int>({0}));
  // Hosts: f32 as stored, packed, and by gemm where that is not what matmul calls.
  EXPECT_EQ(ways_in(product, {.ranks = 2, .vector_bytes = 32}), std::set<int>({0, 1}));
  EXPECT_EQ(ways_in(product, {.ranks = 2, .vector_bytes = 64}), std::set<int>({0, 1, 2}));
  const Schedule with = Derive(product).value()[0],
                 without = FindSchedule(Adam(1024), "AR; fuse(C)");
  EXPECT_TRUE(Validate({.gemm = 15}, with, {.ranks = 2}).ok());
  for (int gemm : {-1, 16}) EXPECT_FALSE(Validate({.gemm = gemm}, with, {.ranks = 2}).ok());
  EXPECT_EQ(Validate({.gemm = 1}, without, {.ranks = 2}).message(),
            "config \"library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull gemm=1\": want "
            "gemm in 0..15 for a schedule with matrix products, else 0");
}

TEST(Configs, SendOperandsInMessagesThatAreSmallerStill) {
  const auto sends = [](const Graph& program, const char* words, ConfigSpace space) {
    return Offers(OneShot::kLL, program, words, space);
  };
  EXPECT_TRUE(sends(Adam(1024), "fuse(AR, C)", {.ranks = 2}));
  EXPECT_TRUE(sends(Adam(16 << 10), "AR; fuse(C)", {.ranks = 8}));  // f32: 64 KiB
  EXPECT_FALSE(sends(Adam((16 << 10) + 1), "AR; fuse(C)", {.ranks = 8}));
  EXPECT_FALSE(sends(Adam(1024), "fuse(AR, C)", {.ranks = 1}));
  EXPECT_FALSE(sends(Adam(1024), "fuse(RS, C, AG); slice m v", {.ranks = 2}));
}

TEST(Configs, CopyInBulkWhereAGpuDoesAndAKernelOnlyGathers) {
  const auto copies = [](absl::string_view words, bool bulk) {
    return absl::c_any_of(Configs(FindSchedule(Adam(1024), words), {.ranks = 4, .bulk = bulk}),
                          [](const Config& config) {
                            return config.bulk && config.protocol == Protocol::kGenerated;
                          });
  };
  EXPECT_TRUE(copies("RS; fuse(C); AG p; slice m v", true));
  EXPECT_FALSE(copies("RS; fuse(C); AG p; slice m v", false));
  EXPECT_FALSE(copies("fuse(RS, C, AG); slice m v", true))
      << "what is gathered was computed by the same kernel";
}

TEST(Configs, RingsWhereSomeRanksMayBeNearer) {
  const auto rings = [](const Schedule& schedule, ConfigSpace space) {
    return absl::c_any_of(Configs(schedule, space),
                          [](const Config& config) { return config.ring; });
  };
  const Schedule fused = FindSchedule(Adam(1024), "fuse(RS, C, AG); slice m v");
  EXPECT_TRUE(rings(fused, {.ranks = 3, .ring = true}));
  EXPECT_TRUE(rings(FindSchedule(Adam(1024), "RS; fuse(C); AG p; slice m v"),
                    {.ranks = 4, .ring = true}));  // generated
  EXPECT_FALSE(rings(fused, {.ranks = 4}));
  EXPECT_FALSE(rings(fused, {.ranks = 2, .ring = true})) << "both ranks are neighbours";
  EXPECT_FALSE(rings(fused, {.ranks = 4, .any_order = false, .library = false, .ring = true}));
  EXPECT_FALSE(rings(FindSchedule(Adam(1024), "fuse(AR, C)"), {.ranks = 4, .ring = true}))
      << "each rank sums for itself";
  EXPECT_EQ(
      Validate({.ring = true}, fused, {.ranks = 4, .any_order = false, .library = false}).message(),
      "config \"library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull ring=1\": a ring does "
      "not sum in rank order");
  EXPECT_EQ(Validate({.multicast = true, .ring = true}, fused, {.ranks = 4}).message(),
            "config \"library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull multicast=1 "
            "ring=1\": want one of multicast=1, ring=1 and bulk=1");
}

TEST(Configs, MulticastWhereMemoryAndNumericsPermitAndItPays) {
  const auto multicasts = [](const char* words, ConfigSpace space) {
    return absl::c_any_of(Configs(FindSchedule(Adam(1024), words), space),
                          [](const Config& config) { return config.multicast; });
  };
  EXPECT_TRUE(multicasts("fuse(RS, C, AG); slice m v", {.ranks = 4, .multicast = true}));
  EXPECT_TRUE(
      multicasts("RS; fuse(C); AG p; slice m v", {.ranks = 4, .multicast = true}));  // generated
  EXPECT_FALSE(multicasts("fuse(RS, C, AG); slice m v", {.ranks = 4}));
  EXPECT_FALSE(multicasts("fuse(RS, C, AG); slice m v", {.ranks = 2, .multicast = true}));
  EXPECT_FALSE(multicasts("fuse(RS, C, AG); slice m v",
                          {.ranks = 4, .any_order = false, .library = false, .multicast = true}));
  EXPECT_FALSE(multicasts("fuse(AR, C)", {.ranks = 4, .multicast = true}))
      << "a sum in no order, on each rank";
  const Schedule s = FindSchedule(Adam(1024), "fuse(RS, C, AG); slice m v");
  EXPECT_EQ(Validate({.multicast = true}, s, {.ranks = 4, .any_order = false, .library = false})
                .message(),
            "config \"library vec=16 chunk=4096 blocks=1 stream=none one-shot=pull multicast=1\": "
            "a switch does not sum in rank order");
}

Graph Product(DType dtype = DType::kF32) {
  return BindSizes(MakeWorkload("mlp", {.dtype = dtype}).value(),
                   {{"B", 1}, {"S", 512}, {"H", 1024}, {"K", 256}})
      .value();
}

TEST(Configs, SplitTheMultiprocessorsOfGpusBetweenProductsAndCollectivesBesideThem) {
  const auto tried = [](const Graph& program, absl::string_view words, const ConfigSpace& space) {
    std::set<int> besides;
    std::set<std::string> seen;
    const Schedule s = FindSchedule(program, words);
    for (const Config& config : Configs(s, space)) {
      EXPECT_TRUE(Validate(config, s, space).ok()) << Text(config);
      EXPECT_TRUE(seen.insert(Text(config)).second) << Text(config);
      besides.insert(config.beside);
      EXPECT_TRUE(config.beside == 0 || config.tiles > 0 || config.blocks <= space.multiprocessors)
          << Text(config) << ": blocks of no kernel are varied";
    }
    return besides;
  };
  const ConfigSpace half{.ranks = 2, .multiprocessors = 66};
  EXPECT_EQ(tried(Product(), "ol(MM, fuse(RS[flat], C, AG))", half), std::set<int>({0, 8, 16}));
  EXPECT_EQ(tried(Product(), "ol(MM, AR, fuse(C))", half), std::set<int>({0, 8, 16}));  // generated
  EXPECT_EQ(tried(Product(), "ol(MM, fuse(RS[flat], C, AG))", {.ranks = 2, .multiprocessors = 3}),
            std::set<int>({0, 1}));
  EXPECT_EQ(tried(Product(), "ol(MM, fuse(RS[flat], C, AG))", {.ranks = 2, .multiprocessors = 1}),
            std::set<int>({0}));
  EXPECT_EQ(tried(Product(), "ol(MM, fuse(RS[flat], C, AG))", {.ranks = 2}), std::set<int>({0}));
  EXPECT_EQ(tried(Product(), "MM; fuse(RS[flat], C, AG)", half), std::set<int>({0}));
}

TEST(Validate, RefusesToLeaveMultiprocessorsToNobody) {
  const Schedule fused = FindSchedule(Product(), "ol(MM, fuse(RS[flat], C, AG))"),
                 unfused = FindSchedule(Product(), "ol(MM, AR, fuse(C))");
  const auto words = [](const Config& config, const Schedule& s, const ConfigSpace& space) {
    const absl::Status status = Validate(config, s, space);
    return std::string(status.ok() ? ""
                                   : status.message().substr(status.message().find("\": ") + 3));
  };
  const ConfigSpace half{.ranks = 2, .multiprocessors = 66};
  EXPECT_EQ(words({.pieces = 2, .beside = 65}, fused, half), "");
  EXPECT_EQ(words({.pieces = 2, .beside = 66}, fused, half),
            "want beside below 66, the multiprocessors that a rank has");
  EXPECT_EQ(words({.pieces = 2, .beside = 66}, fused, {.ranks = 2}), "");
  EXPECT_EQ(words({.protocol = Protocol::kGenerated, .pieces = 2, .beside = 1}, unfused, half), "");
  const std::string range =
      "want beside in 0..1024 for a schedule that overlaps a product with collectives by kernels, "
      "else 0";
  EXPECT_EQ(words({.pieces = 2, .beside = -1}, fused, half), range);
  EXPECT_EQ(words({.pieces = 2, .beside = 1025}, fused, {.ranks = 2}), range);
  EXPECT_EQ(words({.pieces = 2, .beside = 1}, unfused, half), range);  // a library's
  EXPECT_EQ(words({.beside = 1}, FindSchedule(Product(), "MM; fuse(RS[flat], C, AG)"), half),
            range);
  EXPECT_EQ(words({.beside = 1}, FindSchedule(Adam(1024), "AR; fuse(C)"), half), range);
}

TEST(Configs, LeaveOutTheLibraryWhereItDoesNotApply) {
  const std::vector<Config> configs =
      Configs(FindSchedule(Adam(4096), "AR; fuse(C)"), {.ranks = 2, .library = false});
  ASSERT_EQ(configs.size(), 3u);  // by pull, staged, in messages
  for (const Config& config : configs) EXPECT_EQ(config.protocol, Protocol::kGenerated);
}

TEST(Configs, StreamOnlyWhatDoesNotFitInCache) {
  for (const Config& config :
       Configs(FindSchedule(Adam(1024), "fuse(RS, C, AG); slice m v"), {.ranks = 2})) {
    EXPECT_EQ(config.streaming, Streaming::kNone);
  }
  EXPECT_EQ(
      Configs(FindSchedule(Adam(16 << 20), "fuse(RS, C, AG); slice m v"), {.ranks = 2}).size(),
      5u);  // both at two widths
}

TEST(Configs, UseCoresThatRanksLeave) {
  bool two = false;
  for (const Config& config :
       Configs(FindSchedule(Adam(1 << 20), "AR; fuse(C)"), {.ranks = 1, .cores = 2}))
    two |= config.blocks == 2;
  EXPECT_TRUE(two);
}

}  // namespace
}  // namespace coconet
