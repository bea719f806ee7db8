#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/hlo/testing/imported_results.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

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

}  // namespace
}  // namespace coconet
