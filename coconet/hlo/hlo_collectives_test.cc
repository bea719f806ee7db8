#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coconet/hlo/testing/imported_results.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

TEST(HloCollectives, CollectivesAreOverAllRanks) {
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(
        Result("x = f32[3] parameter(0)\n"
               "r = f32[3] all-reduce(x), replica_groups={{0,1}}, to_apply=add, channel_id=1, "
               "use_global_device_ids=true",
               2, rank, ", num_partitions=2"),
        List(3, [](int64_t i) { return In("x", i, 0) + In("x", i, 1); }));
    EXPECT_EQ(
        Result("p = u32[] partition-id()\n c = s32[] convert(p)", 2, rank, ", num_partitions=2"),
        std::vector<Number>{rank});
  }
}

/// Groups of four ranks, and the ranks in the order of each rank's group.
struct GroupsOfFour {
  const char* text;
  std::vector<std::vector<int>> of_rank;
};
const std::vector<GroupsOfFour>& Groups() {
  static const auto& groups = *new std::vector<GroupsOfFour>{
      {"{{0,1,2,3}}", {{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 1, 2, 3}}},
      {"{{2,0,3,1}}", {{2, 0, 3, 1}, {2, 0, 3, 1}, {2, 0, 3, 1}, {2, 0, 3, 1}}},
      {"[2,2]<=[2,2]T(1,0)", {{0, 2}, {1, 3}, {0, 2}, {1, 3}}},
      {"{{3,0},{1,2}}", {{3, 0}, {1, 2}, {1, 2}, {3, 0}}},
      {"{{0},{1},{2},{3}}", {{0}, {1}, {2}, {3}}}};
  return groups;
}

TEST(HloCollectives, CollectivesInGroups) {
  for (const GroupsOfFour& groups : Groups()) {
    const std::string tail = absl::StrCat(", replica_groups=", groups.text, kGlobal);
    const auto size = static_cast<int64_t>(groups.of_rank[0].size());
    const auto sum = [&](int rank, int64_t i) {
      double total = 0;
      for (int r : groups.of_rank[rank]) total += In("x", i, r);
      return total;
    };
    const auto greatest = [&](int rank, int64_t i) {
      double most = -100;
      for (int r : groups.of_rank[rank]) most = std::max(most, In("x", i, r));
      return most;
    };
    const auto place = [&](int rank) {
      const std::vector<int>& group = groups.of_rank[rank];
      return std::find(group.begin(), group.end(), rank) - group.begin();
    };
    ExpectOnRanks(4, 3, "x = f32[3] parameter(0)\n r = f32[3] all-reduce(x), to_apply=add" + tail,
                  sum);
    ExpectOnRanks(4, 3, "x = f32[3] parameter(0)\n r = f32[3] all-reduce(x), to_apply=max" + tail,
                  greatest);
    // Along the second dimension.
    const std::string gathered = absl::StrCat("f32[2,", 3 * size, "]");
    ExpectOnRanks(
        4, 6 * size,
        "x = f32[2,3] parameter(0)\n r = " + gathered + " all-gather(x), dimensions={1}" + tail,
        [&](int rank, int64_t i) {
          const int64_t column = i % (3 * size);
          return In("x", i / (3 * size) * 3 + column % 3,
                    groups.of_rank[rank][static_cast<size_t>(column / 3)]);
        });
    const std::string wide = absl::StrCat("f32[3,", 2 * size, "]");
    ExpectOnRanks(
        4, 6,
        "x = " + wide + " parameter(0)\n r = f32[3,2] reduce-scatter(x), " +
            "dimensions={1}, to_apply=add" + tail,
        [&](int rank, int64_t i) { return sum(rank, i / 2 * 2 * size + 2 * place(rank) + i % 2); });
    const auto exchanged = [&](int rank, int64_t i) {
      const int64_t column = i % (2 * size);
      return In("x", i / (2 * size) * 2 * size + 2 * place(rank) + column % 2,
                groups.of_rank[rank][static_cast<size_t>(column / 2)]);
    };
    ExpectOnRanks(4, 6 * size,
                  "x = " + wide + " parameter(0)\n r = " + wide + " all-to-all(x), " +
                      "dimensions={1}" + tail,
                  exchanged);
    ExpectOnRanks(4, 3, "x = f32[3] parameter(0)\n r = f32[3] collective-broadcast(x)" + tail,
                  [&](int rank, int64_t i) { return In("x", i, groups.of_rank[rank][0]); });
  }
}

TEST(HloCollectives, ExchangesOfSeveralArrays) {
  ExpectOnRanks(2, 3,
                "x = f32[3] parameter(0)\n y = f32[3] parameter(1)\n"
                "t = (f32[3], f32[3]) all-to-all(x, y), replica_groups={{0,1}}, channel_id=1\n"
                "a = f32[3] get-tuple-element(t), index=0\n"
                "b = f32[3] get-tuple-element(t), index=1\n c = f32[] constant(100)\n"
                "d = f32[3] broadcast(c), dimensions={}\n e = f32[3] multiply(a, d)\n"
                "r = f32[3] add(e, b)",
                [](int rank, int64_t i) {
                  const std::string name = rank == 0 ? "x" : "y";
                  return 100 * In(name, i, 0) + In(name, i, 1);
                });
  ExpectOnRanks(2, 2,
                "x = f32[2] parameter(0)\n y = s32[2] parameter(1)\n"
                "t = (f32[2], s32[2]) all-reduce(x, y), replica_groups={{0,1}}, to_apply=add, "
                "channel_id=1, use_global_device_ids=true\n"
                "r = s32[2] get-tuple-element(t), index=1",
                [](int, int64_t i) { return In("y", i, 0) + In("y", i, 1); });
}

TEST(HloCollectives, SendsToOtherRanks) {
  const auto next = [](int rank, int64_t i) { return In("x", i, (rank + 2) % 3); };
  ExpectOnRanks(3, 2,
                "x = f32[2] parameter(0)\n r = f32[2] collective-permute(x), channel_id=1, "
                "source_target_pairs={{0,1},{1,2},{2,0}}",
                next);
  ExpectOnRanks(3, 2,
                "x = f32[2] parameter(0)\n s = (f32[2], f32[2], u32[], u32[]) "
                "collective-permute-start(x), channel_id=1, "
                "source_target_pairs={{0,1},{1,2},{2,0}}\n"
                "r = f32[2] collective-permute-done(s)",
                next);
  ExpectOnRanks(3, 2,
                "x = f32[2] parameter(0)\n r = f32[2] collective-permute(x), channel_id=1, "
                "source_target_pairs={{0,2}}",
                [](int rank, int64_t i) { return rank == 2 ? In("x", i, 0) : 0; });
}

TEST(HloCollectives, CollectivesOfBoolsAndOfWhatAllRanksHave) {
  // Whether one, and whether both have a positive element.
  for (const bool any : {true, false}) {
    ExpectOnRanks(2, 4,
                  absl::StrCat("x = f32[4] parameter(0)\n z = f32[] constant(0)\n"
                               "b = f32[4] broadcast(z), dimensions={}\n"
                               "p = pred[4] compare(x, b), direction=GT\n"
                               "a = pred[4] all-reduce(p), replica_groups={{0,1}}, to_apply=",
                               any ? "any" : "both", kGlobal, "\n r = s32[4] convert(a)"),
                  [&](int, int64_t i) {
                    const int count = (In("x", i, 0) > 0) + (In("x", i, 1) > 0);
                    return count >= (any ? 1 : 2) ? 1 : 0;
                  });
  }
  ExpectOnRanks(2, 4,
                absl::StrCat("i = f32[2] iota(), iota_dimension=0\n"
                             "r = f32[4] all-gather(i), dimensions={0}, replica_groups={{0,1}}",
                             kGlobal),
                [](int, int64_t i) { return static_cast<double>(i % 2); });
  ExpectOnRanks(2, 1,
                absl::StrCat("i = f32[2] iota(), iota_dimension=0\n r = f32[1] reduce-scatter(i), "
                             "dimensions={0}, replica_groups={{0,1}}, to_apply=add",
                             kGlobal),
                [](int rank, int64_t) { return 2.0 * rank; });
}

TEST(HloCollectives, GroupsOfReplicasLeavePartitionsAloneOrTogether) {
  // Without a channel, partitions are alone; with one but without global ids, together.
  ExpectOnRanks(2, 2,
                "x = f32[2] parameter(0)\n"
                "r = f32[2] all-reduce(x), replica_groups={{0}}, to_apply=add",
                [](int rank, int64_t i) { return In("x", i, rank); });
  ExpectOnRanks(2, 2,
                "x = f32[2] parameter(0)\n"
                "r = f32[2] all-reduce(x), replica_groups={{0}}, to_apply=add, channel_id=1",
                [](int, int64_t i) { return In("x", i, 0) + In("x", i, 1); });
}

TEST(HloCollectives, ReplicasOfSeveralPartitions) {
  // Device d is partition d % 2 of replica d / 2.
  const std::string four = ", replica_count=2", x = "x = f32[2] parameter(0)\n";
  const auto on_four = [&](const std::string& instruction, auto rank_lists) {
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(Result(x + instruction, 4, rank, ", num_partitions=2" + four),
                List(2,
                     [&](int64_t i) {
                       double sum = 0;
                       for (int r : rank_lists(rank)) sum += In("x", i, r);
                       return sum;
                     }))
          << instruction << " on rank " << rank;
    }
  };
  using Ranks = std::vector<int>;
  const std::string sum = "r = f32[2] all-reduce(x), to_apply=add, replica_groups=";
  const auto across_replicas = [](int rank) { return Ranks{rank % 2, rank % 2 + 2}; };
  on_four(sum + "{}", across_replicas);
  on_four(sum + "{{0,1}}", across_replicas);
  on_four(sum + "{{0},{1}}, channel_id=1",
          [](int rank) { return Ranks{rank / 2 * 2, rank / 2 * 2 + 1}; });
  on_four(sum + "{}, channel_id=1", [](int) { return Ranks{0, 1, 2, 3}; });
  on_four(sum + "{{0,3},{1,2}}" + kGlobal,
          [](int rank) { return rank % 3 == 0 ? Ranks{0, 3} : Ranks{1, 2}; });
  const std::string send = "r = f32[2] collective-permute(x), source_target_pairs={{0,1},{1,0}}";
  on_four(send, [](int rank) { return Ranks{(rank + 2) % 4}; });
  on_four(send + ", channel_id=1", [](int rank) { return Ranks{rank ^ 1}; });
  on_four("r = f32[2] collective-broadcast(x), channel_id=1, replica_groups={{1,0}}",
          [](int rank) { return Ranks{rank / 2 * 2 + 1}; });
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(Result("p = u32[] partition-id()\n q = u32[] replica-id()\n"
                     "t = u32[] constant(10)\n u = u32[] multiply(q, t)\n r = u32[] add(p, u)",
                     4, rank, ", num_partitions=2" + four),
              (std::vector<Number>{10.0 * (rank / 2) + rank % 2}));
  }
}

/// A module that does not say for how many ranks it is, on so many.
absl::StatusOr<ImportedHlo> ImportFor(int64_t ranks, const std::string& instructions,
                                      bool for_planning = false,
                                      const std::string& attributes = "") {
  const absl::StatusOr<HloModule> module = ParseHlo(Module(instructions, attributes));
  if (!module.ok()) return module.status();
  return ImportHlo(*module, {.ranks = ranks, .for_planning = for_planning});
}

std::string MistakeFor(int64_t ranks, const std::string& instructions,
                       const std::string& attributes = "") {
  return std::string(ImportFor(ranks, instructions, false, attributes).status().message());
}

TEST(HloCollectives, GroupsOfAllAreTheWorld) {
  for (const char* tail : {", replica_groups={}", ""}) {
    const std::string sum =
        absl::StrCat("x = f32[4] parameter(0)\n r = f32[4] all-reduce(x), to_apply=add", tail);
    for (const bool for_planning : {false, true}) {
      for (int64_t ranks : {0, 1, 2, 3}) {
        const absl::StatusOr<ImportedHlo> imported = ImportFor(ranks, sum, for_planning);
        ASSERT_TRUE(imported.ok()) << imported.status();
        EXPECT_EQ(imported->is_for_any, ranks == 0);
        EXPECT_EQ(imported->partitions, std::max<int64_t>(ranks, 1));
        const bool has_sum = absl::StrContains(Print(imported->program), "all_reduce");
        EXPECT_EQ(has_sum, ranks != 1) << Print(imported->program);
      }
    }
    // Where the number is not known, the program is for any.
    for (int ranks : {1, 2, 3}) {
      EXPECT_EQ(Result(sum, ranks, ranks - 1), List(4, [&](int64_t i) {
                  double total = 0;
                  for (int r = 0; r < ranks; ++r) total += In("x", i, r);
                  return total;
                }));
      EXPECT_EQ(Result("c = f32[] constant(3)\n x = f32[2] broadcast(c), dimensions={}\n"
                       "s = f32[2] all-reduce(x), replica_groups={}, to_apply=add\n"
                       "ROOT m = f32[2] all-reduce(s), replica_groups={}, to_apply=max",
                       ranks),
                (std::vector<Number>{3.0 * ranks, 3.0 * ranks}));
      for (const char* id : {"replica-id", "partition-id"}) {
        EXPECT_EQ(Result(absl::StrCat("r = u32[] ", id, "()"), ranks, ranks - 1),
                  (std::vector<Number>{ranks - 1.0}));
      }
    }
  }
}

TEST(HloCollectives, ShapesTellHowManyRanksThereAre) {
  for (const char* text :
       {"r = f32[12] all-gather(x), dimensions={0}, replica_groups={}",
        "s = (f32[4], f32[12]) all-gather-start(x), dimensions={0}, replica_groups={}\n"
        "r = f32[12] all-gather-done(s)",
        "b = f32[4,6] broadcast(x), dimensions={0}\n"
        "r = f32[4,2] reduce-scatter(b), dimensions={1}, to_apply=add, replica_groups={}",
        "r = (f32[4], f32[4], f32[4]) all-to-all(x, x, x), replica_groups={}",
        "s = f32[4] all-reduce(x), to_apply=add, replica_groups={{0,1,2}}",
        "s = f32[4] all-reduce(x), to_apply=add, replica_groups=[1,3]<=[3]"}) {
    const std::string all = absl::StrCat("x = f32[4] parameter(0)\n", text);
    for (int64_t ranks : {0, 3}) {
      const absl::StatusOr<ImportedHlo> imported = ImportFor(ranks, all);
      ASSERT_TRUE(imported.ok()) << imported.status();
      EXPECT_EQ(imported->partitions, 3);
      EXPECT_FALSE(imported->is_for_any);
    }
    EXPECT_THAT(MistakeFor(2, all), HasSubstr("the module was lowered for 3 devices (line"));
  }
  const std::string gathered =
      "x = f32[4] parameter(0)\n g = f32[8] all-gather(x), dimensions={0}, replica_groups={}\n";
  EXPECT_THAT(MistakeFor(3, gathered),
              HasSubstr("lowered for 2 devices (line 43: %g = f32[8] all-gather), have 3 ranks"));
  EXPECT_THAT(MistakeFor(0, gathered + "r = f32[24] all-gather(g), dimensions={0}"),
              HasSubstr("%r = f32[24] all-gather: it is for 3 devices, want 2, as line 43: %g"));
  EXPECT_THAT(MistakeFor(0, gathered, ", replica_count=4"),
              HasSubstr("%g = f32[8] all-gather: its operands give f32[16] on 4 ranks"));
  EXPECT_THAT(MistakeFor(2, gathered, ", replica_count=4"),
              HasSubstr("lowered for 4 devices (HloModule: replica_count=4), have 2 ranks"));
}

TEST(HloCollectives, WhatNeedsTheNumberOfRanksSaysSo) {
  const std::string x = "x = f32[4] parameter(0)\n",
                    exchange = x + "r = f32[4] all-to-all(x), dimensions={0}, replica_groups={}";
  EXPECT_THAT(MistakeFor(0, exchange), HasSubstr("%r = f32[4] all-to-all: the module leaves open"));
  EXPECT_TRUE(ImportFor(2, exchange).ok());
  EXPECT_THAT(MistakeFor(3, exchange), HasSubstr("want an extent that is a multiple of 3"));
  const std::string send =
      x + "r = f32[4] collective-permute(x), source_target_pairs={{0,2},{2,0}}";
  EXPECT_EQ(ImportFor(0, send)->partitions, 3);
  EXPECT_EQ(ImportFor(5, send)->partitions, 5);
  EXPECT_THAT(MistakeFor(2, send), HasSubstr("lowered for 3 devices (line 43: %r"));
  EXPECT_THAT(MistakeFor(2, x + "p = u32[] partition-id()\n q = u32[] replica-id()\n"
                                "r = u32[] add(p, q)"),
              HasSubstr("want num_partitions or replica_count in the header"));
}

TEST(HloCollectives, ScalarsThatOnlyOrderCollectivesArePassedThrough) {
  const std::string two = ", num_partitions=2",
                    tail = absl::StrCat(", replica_groups={{0,1}}", kGlobal);
  const std::string before =
      "x = f32[4] parameter(0)\n t = f32[] parameter(1)\n"
      "s = (f32[2], f32[]) reduce-scatter(x, t), dimensions={0}, to_apply=add" +
      tail + "\n y = f32[2] get-tuple-element(s), index=0\n";
  const auto scattered = [](int rank, int64_t i) {
    return In("x", 2 * rank + i, 0) + In("x", 2 * rank + i, 1);
  };
  ExpectOnRanks(2, 2, before + "r = f32[2] copy(y)", scattered);
  // Through others, and made 0.
  const std::string next = "u = f32[] get-tuple-element(s), index=1\n";
  ExpectOnRanks(2, 4,
                before + next + "g = (f32[4], f32[]) all-gather(y, u), dimensions={0}" + tail +
                    "\n v = f32[] get-tuple-element(g), index=1\n z = f32[] constant(0)\n"
                    "w = f32[] multiply(v, z)\n b = f32[4] broadcast(w), dimensions={}\n"
                    "a = f32[4] get-tuple-element(g), index=0\n r = f32[4] add(a, b)",
                [&](int, int64_t i) { return scattered(static_cast<int>(i / 2), i % 2); });
  // What is used has no value.
  const std::string used =
      before + next + "b = f32[2] broadcast(u), dimensions={}\n r = f32[2] add(y, b)";
  EXPECT_THAT(MistakeFor(0, used, two), HasSubstr("1 x reduce-scatter of a scalar (first at line"));
  const absl::StatusOr<ImportedHlo> planned = ImportFor(0, used, true, two);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->opaque, (std::map<std::string, int64_t>{{"reduce-scatter of a scalar", 1}}));
  // It sends half of its 20 bytes.
  EXPECT_THAT(Print(planned->program),
              HasSubstr("opaque(reduce_scatter_of_a_scalar, f32, [2], 0, 10, x, t)"));
}

TEST(HloCollectives, SeveralArraysInTwoHalves) {
  ExpectOnRanks(2, 4,
                absl::StrCat("x = f32[2] parameter(0)\n y = f32[3] parameter(1)\n"
                             "s = ((f32[2], f32[3]), (f32[4], f32[6])) all-gather-start(x, y), "
                             "dimensions={0}, replica_groups={{0,1}}",
                             kGlobal,
                             "\n d = (f32[4], f32[6]) all-gather-done(s)\n"
                             "r = f32[4] get-tuple-element(d), index=0"),
                [](int, int64_t i) { return In("x", i % 2, static_cast<int>(i / 2)); });
}

TEST(ImportHlo, StatesOfEachRankTakeWhatAllRanksHave) {
  const std::string alias = ", input_output_alias={ {0}: (0, {}, may-alias) }";
  const std::string x = "x = s32[2] parameter(0)\n";
  const auto both = [](int, int64_t i) { return In("x", i, 0) + In("x", i, 1); };
  ExpectOnRanks(2, 2,
                x + "s = s32[2] all-reduce(x), replica_groups={}, to_apply=add_s32" + kGlobal +
                    "\n ROOT t = (s32[2]) tuple(s)",
                both, alias);
  ExpectOnRanks(
      2, 2,
      x + "c = s32[] constant(7)\n b = s32[2] broadcast(c), dimensions={}\n"
          "ROOT t = (s32[2]) tuple(b)",
      [](int, int64_t) { return 7; }, alias);
}

TEST(HloCollectives, FromTextWantsTheRanksOfAModuleForSeveral) {
  const std::string text = Module(
      "x = f32[4] parameter(0)\n r = f32[4] all-reduce(x), replica_groups={{0,1}}, "
      "to_apply=add",
      ", replica_count=2");
  EXPECT_THAT(std::string(FromHlo(text).status().message()),
              HasSubstr("FromHlo: the module is for 2 ranks; give the number that there are"));
  EXPECT_TRUE(FromHlo(text, 2).ok()) << FromHlo(text, 2).status();
  EXPECT_FALSE(FromHlo(text, 3).ok());
}

}  // namespace
}  // namespace coconet
