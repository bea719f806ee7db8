#include "autotune/measure/reference.h"

#include <map>
#include <vector>

#include "coconet/ir/lists.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

constexpr int64_t kLarge = int64_t{1} << 23;

Graph Over(const std::string& workload, std::vector<int64_t> sizes) {
  const absl::StatusOr<Graph> program = MakeWorkload(workload);
  EXPECT_TRUE(program.ok()) << program.status();
  const absl::StatusOr<Graph> bound = BindSizes(*program, {{"N", std::move(sizes)}});
  EXPECT_TRUE(bound.ok()) << bound.status();
  return *bound;
}

TEST(NotSpotChecked, LeavesOneTensorOfEachSize) {
  const Graph lamb = Over("lamb", {kLarge, 7, kLarge, 9, kLarge, 7});
  std::set<std::string> ever;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const std::set<std::string> names = NotSpotChecked(lamb, seed);
    EXPECT_EQ(names.size(), 3);
    EXPECT_EQ(names.count("p.0") + names.count("p.2") + names.count("p.4"), 2) << seed;
    EXPECT_EQ(names.count("p.1") + names.count("p.5"), 1) << seed;
    ever.insert(names.begin(), names.end());
  }
  EXPECT_EQ(ever, (std::set<std::string>{"p.0", "p.1", "p.2", "p.4", "p.5"}));
}

TEST(NotSpotChecked, IsEmptyWhereEverythingIsChecked) {
  EXPECT_TRUE(NotSpotChecked(Over("lamb", {1000, 1000, 1000}), 1).empty()) << "small";
  EXPECT_TRUE(NotSpotChecked(Over("adam", {kLarge, kLarge, kLarge}), 1).empty()) << "no sums";
  EXPECT_TRUE(NotSpotChecked(Over("clip", {kLarge, kLarge, kLarge}), 1).empty())
      << "a sum over all tensors";
}

}  // namespace
}  // namespace coconet
