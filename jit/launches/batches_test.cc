#include "jit/launches/batches.h"

#include <set>
#include <vector>

#include "coconet/schedule/derivation/derive.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"
#include "jit/launches/pieces.h"

namespace coconet {
namespace {

/// The workload dlrm_embedding with tables of so many look-ups, pooled beside their exchange.
Schedule Overlapped(const std::vector<int64_t>& lookups) {
  const Graph symbolic = MakeWorkload("dlrm_embedding", {}).value();
  const Graph bound =
      BindSizes(symbolic, {{"B", 64}, {"R", 10}, {"D", 32}, {"L", lookups}}).value();
  const std::vector<Schedule> schedules = Derive(bound).value();
  for (const Schedule& s : schedules) {
    if (!s.overlaps().empty()) return s;
  }
  ADD_FAILURE() << "nothing is overlapped";
  return schedules[0];
}

std::vector<std::vector<int>> Batches(const std::vector<int64_t>& lookups, int ranks, int batches) {
  const Schedule s = Overlapped(lookups);
  return BatchesOf(s, s.overlaps()[0], ranks, batches);
}

TEST(Batches, HaveAboutAsMuchWork) {
  // On one rank, a table's weight is its number of look-ups, and all tables have as much to send.
  EXPECT_EQ(Batches({4, 4, 4, 4}, 1, 2).size(), 2u);
  const std::vector<std::vector<int>> batches = Batches({1, 8, 2, 7, 3, 6}, 1, 3);
  const std::vector<int64_t> lookups = {1, 8, 2, 7, 3, 6};
  ASSERT_EQ(batches.size(), 3u);
  for (const std::vector<int>& batch : batches) {
    EXPECT_EQ(batch.size(), 2u);
    EXPECT_EQ(lookups[batch[0]] + lookups[batch[1]], 9);
  }
}

TEST(Batches, EndWithTheTableThatKeepsARankBusy) {
  // Table 4 is all of a rank's work: what others send in the meantime need not wait for it.
  const std::vector<std::vector<int>> batches = Batches({2, 2, 2, 2, 14, 2, 2, 2}, 2, 4);
  ASSERT_EQ(batches.size(), 4u);
  EXPECT_EQ(batches.back()[0], 4);
  std::set<int> all;
  for (const std::vector<int>& batch : batches) all.insert(batch.begin(), batch.end());
  EXPECT_EQ(all.size(), 8u);
}

TEST(Batches, AreNoMoreThanTensors) {
  EXPECT_EQ(Batches({3, 0, 1}, 2, 8).size(), 3u);
  const Schedule s = Overlapped({3, 0, 1});
  EXPECT_EQ(CountPieces(s, s.overlaps()[0], 2, 8, /*columns=*/false).value(), 3);
  const Schedule one = Overlapped({3});
  EXPECT_EQ(CountPieces(one, one.overlaps()[0], 2, 8, /*columns=*/false).status().message(),
            "a list of one tensor has no batches of tensors");
}

}  // namespace
}  // namespace coconet
