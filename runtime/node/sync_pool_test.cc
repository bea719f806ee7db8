#include "runtime/node/sync_pool.h"

#include <string>
#include <utility>
#include <vector>

#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;

/// Gives away what the other rank of two says.
class TwoRanks final : public Exchange {
 public:
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view mine) override {
    said.emplace_back(mine);
    return std::vector<std::string>{std::string(mine), other};
  }

  std::string other = "0";
  std::vector<std::string> said;
};

class Bytes final : public Memory {
 public:
  explicit Bytes(int64_t bytes) : Memory(0, bytes, true, {nullptr}) {}
};

class SyncPoolTest : public testing::Test {
 protected:
  using Set = std::shared_ptr<SyncSet>;

  absl::StatusOr<Set> TryTake(int64_t shared, int64_t local = 0, bool symmetric = true) {
    return pool_->Take(ranks_, SyncLayout{{}, shared, local, symmetric}, symmetric,
                       [&](const SyncLayout& bytes) -> absl::StatusOr<std::unique_ptr<SyncSet>> {
                         ++made_;
                         RETURN_IF_ERROR(makes_);
                         auto set = std::make_unique<SyncSet>();
                         set->shared = std::make_unique<Bytes>(bytes.shared_bytes);
                         set->local = std::make_unique<Bytes>(bytes.local_bytes);
                         return set;
                       });
  }
  Set Take(int64_t shared, int64_t local = 0, bool symmetric = true) {
    absl::StatusOr<Set> set = TryTake(shared, local, symmetric);
    EXPECT_EQ(set.status(), absl::OkStatus());
    return set.ok() ? *std::move(set) : nullptr;
  }

  TwoRanks ranks_;
  int made_ = 0;
  absl::Status makes_;
  std::unique_ptr<SyncPool> pool_ = std::make_unique<SyncPool>();
};

TEST_F(SyncPoolTest, GivesASetAgainThatIsFreeOnAllRanks) {
  Set set = Take(100, 20);
  EXPECT_TRUE(set->is_new);
  EXPECT_EQ(set->number, 0);
  const SyncSet* const first = set.get();
  set = nullptr;
  ranks_.other = "1 0";
  set = Take(5000);  // as many bytes as a new set has at least
  EXPECT_EQ(set.get(), first);
  EXPECT_FALSE(set->is_new);
  EXPECT_EQ(set->layout.shared_bytes, 5000);
  EXPECT_EQ(made_, 1);
  EXPECT_THAT(ranks_.said, ElementsAre("0", "1 0"));
}

TEST_F(SyncPoolTest, GivesNoneThatAnotherRankStillHas) {
  Take(100);
  ranks_.other = "1";
  const Set set = Take(100);
  EXPECT_TRUE(set->is_new);
  EXPECT_EQ(set->number, 1);
  EXPECT_EQ(made_, 2);
}

TEST_F(SyncPoolTest, GivesTheFirstThatAllHaveWhateverTheOrder) {
  Set zero = Take(100), one = Take(100);
  EXPECT_EQ(one->number, 1);
  one = zero = nullptr;
  ranks_.other = "2 0 1";
  EXPECT_EQ(Take(100)->number, 0);
  ranks_.other = "2 1";
  EXPECT_EQ(Take(100)->number, 1);
  EXPECT_EQ(made_, 2);
}

TEST_F(SyncPoolTest, NumbersNewSetsAlikeThoughOneRankFailedToMakeSome) {
  ranks_.other = "7";
  EXPECT_EQ(Take(100)->number, 7);
  ranks_.other = "8";
  makes_ = absl::ResourceExhaustedError("full");
  EXPECT_EQ(TryTake(1 << 20).status(), makes_);
  makes_ = absl::OkStatus();
  EXPECT_EQ(Take(1 << 20)->number, 9);
}

TEST_F(SyncPoolTest, GivesNoneThatIsTooShortOrReachedByOthers) {
  Take(16 << 10, 16 << 10);
  ranks_.other = "1 0 1 2 3";
  EXPECT_EQ(Take((16 << 10) + 1)->number, 1);
  EXPECT_EQ(Take(0, (16 << 10) + 1)->number, 2);
  EXPECT_EQ(Take(1, 1, /*symmetric=*/false)->number, 3);
}

TEST_F(SyncPoolTest, GivesNoneThatIsNotReusable) {
  Take(100)->reusable = false;
  ranks_.other = "1 0";
  EXPECT_EQ(Take(100)->number, 1);
}

TEST_F(SyncPoolTest, KeepsTheTwoLargest) {
  Set small = Take(1), large = Take(1 << 20), middle = Take(1 << 18);
  small = large = middle = nullptr;
  ranks_.other = "3 0 1 2";
  EXPECT_EQ(Take(1)->number, 1);
  EXPECT_EQ(ranks_.said.back(), "3 1 2");
}

TEST_F(SyncPoolTest, RefusesWordsThatAreNoNumbers) {
  ranks_.other = "1 x";
  EXPECT_EQ(TryTake(1).status(), absl::InternalError("Bind: want numbers of sets, have \"1 x\""));
}

TEST_F(SyncPoolTest, MayBeGoneBeforeItsSets) {
  Set set = Take(1);
  pool_ = nullptr;
  set = nullptr;
  EXPECT_EQ(made_, 1);
}

}  // namespace
}  // namespace coconet
