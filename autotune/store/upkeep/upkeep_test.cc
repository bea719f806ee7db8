// Last use, pins, limits and numbers of a tuning cache.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/upkeep/prune.h"
#include "autotune/store/upkeep/statistics.h"
#include "autotune/store/upkeep/use_rows.h"
#include "autotune/store/variant_rows.h"
#include "autotune/testing/tuning_cache_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class UpkeepTest : public TuningCacheTest {
 protected:
  TuningRecord Numbered(int i) const { return Record(absl::StrCat("p", i), fast_, slow_); }
  /// A cache with `count` records, the first of which was used longest ago, all years ago.
  std::unique_ptr<TuningCache> Filled(int count) {
    std::unique_ptr<TuningCache> cache = Open();
    for (int i = 0; i < count; ++i) cache->Store(Numbered(i), {fast_, slow_});
    for (int i = 0; i < count; ++i) {
      absl::StatusOr<Statement> set =
          cache->db()->Prepare("UPDATE last_use SET used_s = ? WHERE key = ?");
      EXPECT_TRUE(set->Bind(1700000000 + i).Bind(Numbered(i).key).Run().ok());
    }
    EXPECT_TRUE(cache->db()->Execute("UPDATE variant SET updated_s = 1").ok());
    return cache;
  }
  bool Has(TuningCache& cache, int i) { return cache.FindByKey(Numbered(i).key).has_value(); }
};

TEST_F(UpkeepTest, AUseIsNotedOnceADay) {
  const std::unique_ptr<TuningCache> cache = Filled(1);
  const auto changes = [&] { return cache->db()->QueryInt("SELECT total_changes()").value(); };
  const int64_t before = changes();
  EXPECT_TRUE(cache->Find(Numbered(0).key_text).has_value());
  EXPECT_EQ(changes(), before + 1);
  EXPECT_NEAR(ReadLastUse(*cache->db(), Numbered(0).key).value(), NowSeconds(), 5);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(cache->Find(Numbered(0).key_text).has_value());
  EXPECT_EQ(changes(), before + 1);
}

TEST_F(UpkeepTest, WhatWasNotUsedForLongestGoesFirst) {
  const std::unique_ptr<TuningCache> cache = Filled(200);
  EXPECT_TRUE(cache->Find(Numbered(3).key_text).has_value());  // used now
  const int64_t whole = BytesInUse(*cache->db()).value();
  const Pruned dry = Prune(*cache->db(), {.bytes = whole / 2, .dry_run = true}).value();
  EXPECT_EQ(cache->List().size(), 200u);
  const Pruned pruned = cache->PruneNow({.bytes = whole / 2}).value();
  EXPECT_EQ(pruned.keys, dry.keys);
  // The empty pages of tables count, too.
  ASSERT_GT(pruned.keys.size(), 50u);
  ASSERT_LT(pruned.keys.size(), 190u);
  EXPECT_LE(pruned.bytes_after, whole / 2);
  EXPECT_GT(pruned.bytes_after, whole / 4);
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(Has(*cache, i), i == 3 || i >= static_cast<int>(pruned.keys.size()) + 1) << i;
  EXPECT_EQ(cache->db()->QueryInt("PRAGMA freelist_count").value(), 0);
  EXPECT_EQ(cache->db()->QueryText("PRAGMA integrity_check").value(), "ok");
  EXPECT_EQ(cache->db()->QueryText("PRAGMA foreign_key_check").value(), "");
  EXPECT_EQ(cache->db()->QueryInt("SELECT count(*) FROM program").value(),
            static_cast<int64_t>(cache->List().size()));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(UpkeepTest, WhatIsPinnedTunedOrCurrentStays) {
  const std::unique_ptr<TuningCache> cache = Filled(5);
  ASSERT_TRUE(cache->Pin(Numbered(0).key, slow_).ok());
  cache->Begin(Numbered(1).key, fast_);
  const Pruned pruned = Prune(*cache->db(), {.bytes = 0, .keep = Numbered(2).key}).value();
  EXPECT_THAT(pruned.keys, ElementsAre(Numbered(3).key, Numbered(4).key));
}

TEST_F(UpkeepTest, WhatIsOldGoes) {
  const std::unique_ptr<TuningCache> cache = Filled(5);
  const Prediction old{"c", "w", "l", 1, 1, 5}, young{"c", "w", "l", 1, 1, 1800000000};
  cache->AddPredictions({old, young});
  const Pruned pruned = cache->PruneNow({.unused_since_s = 1700000002}).value();
  EXPECT_THAT(pruned.keys, ElementsAre(Numbered(0).key, Numbered(1).key));
  EXPECT_EQ(pruned.predictions, 1);
  EXPECT_THAT(cache->Predictions(""), ElementsAre(young));
}

TEST_F(UpkeepTest, ATuningKeepsTheFileWithinTheLimit) {
  CacheLayers layers;
  layers.user = file_;
  layers.limit = 200 << 10;
  const std::unique_ptr<TuningCache> cache =
      TuningCache::Open(layers, [this](absl::string_view text) { warnings_.emplace_back(text); });
  for (int i = 0; i < 400; ++i) {
    cache->Store(Numbered(i), {fast_, slow_});
    ASSERT_TRUE(Has(*cache, i)) << i;
    ASSERT_LE(BytesInUse(*cache->db()).value(), layers.limit + (16 << 10)) << i;
  }
  EXPECT_THAT(warnings_, ::testing::Each(HasSubstr("grown beyond COCONET_CACHE_LIMIT")));
  EXPECT_GT(warnings_.size(), 0u);
  EXPECT_GT(cache->List().size(), 45u);
}

TEST_F(UpkeepTest, APinnedVariantIsFoundAsTheBest) {
  const TuningRecord record = Numbered(0);
  const std::unique_ptr<TuningCache> cache = Filled(1);
  ASSERT_TRUE(cache->Pin(record.key, slow_).ok());
  std::optional<TuningRecord> found = cache->Find(record.key_text);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->best == slow_);
  EXPECT_TRUE(found->pinned);
  EXPECT_THAT(found->trust, IsEmpty()) << "the verification is of another variant";
  const Trust trust{"code of slow", "here", "all", 5};
  cache->AddTrust(record.key, slow_, trust);
  EXPECT_THAT(Open()->Find(record.key_text)->trust, ElementsAre(trust));
  EXPECT_TRUE(cache->FindByKey(record.key)->best == fast_);
  cache->Store(record, {fast_, slow_});
  EXPECT_TRUE(cache->Find(record.key_text)->pinned) << "a tuning leaves the pin";
  EXPECT_TRUE(cache->Unpin(record.key).value());
  EXPECT_FALSE(cache->Unpin(record.key).value());
  EXPECT_TRUE(cache->Find(record.key_text)->best == fast_);
}

TEST_F(UpkeepTest, APinHoldsWhenItsVariantIsNoLongerEnumerated) {
  const VariantResult third = Variant("split(%3, flat)", 20);
  const TuningRecord record = Numbered(0);
  const std::unique_ptr<TuningCache> cache = Open();
  cache->Store(record, {fast_, slow_, third});
  ASSERT_TRUE(cache->Pin(record.key, third).ok());
  cache->Store(record, {fast_, slow_});
  EXPECT_TRUE(cache->Find(record.key_text)->best == third);
}

TEST_F(UpkeepTest, WhatNeverRanOrFailedIsNotPinned) {
  const TuningRecord record = Numbered(0);
  VariantResult untried = Variant("split(%3, flat)", 0), wrong = Variant("split(%4, flat)", 20);
  untried.verdict = Verdict::kNotMeasured;
  untried.timing = {};
  wrong.verdict = Verdict::kWrongAnswer;
  const std::unique_ptr<TuningCache> cache = Open();
  cache->Store(record, {fast_, slow_, untried, wrong});
  EXPECT_THAT(std::string(cache->Pin(record.key, untried).message()), HasSubstr("never timed"));
  EXPECT_THAT(std::string(cache->Pin(record.key, wrong).message()), HasSubstr("wrong answer"));
  EXPECT_FALSE(cache->Pin(record.key, Variant("split(%9, flat)", 20)).ok());
  // A pinned variant that fails later is not used.
  ASSERT_TRUE(cache->Pin(record.key, slow_).ok());
  VariantResult failed = Variant("split(%5, flat)", 20);
  cache->Store(record, {fast_, slow_, failed});
  ASSERT_TRUE(cache->Pin(record.key, failed).ok());
  failed.verdict = Verdict::kWrongAnswer;
  cache->Fail(record.key, failed);
  EXPECT_TRUE(cache->Find(record.key_text)->best == fast_);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("is not used")));
}

TEST_F(UpkeepTest, NumbersAreCounted) {
  const std::unique_ptr<TuningCache> cache = Filled(3);
  TuningRecord partial = Numbered(7);
  partial.complete = false;
  partial.created_s = 1600000000;
  VariantResult late = Variant("split(%4, flat)", 0);
  late.verdict = Verdict::kTimedOut;
  late.timing = {};
  cache->Store(partial, {fast_, slow_, late});
  ASSERT_TRUE(cache->Pin(partial.key, slow_).ok());
  const CacheStatistics n = ReadStatistics(*cache->db()).value();
  EXPECT_EQ(n.schema, kCacheSchemaVersion);
  EXPECT_EQ(n.records, 4);
  EXPECT_EQ(n.complete, 3);
  EXPECT_EQ(n.imported, 0);
  EXPECT_EQ(n.pinned, 1);
  EXPECT_EQ(n.variants, 9);
  EXPECT_EQ(n.failures, 1);
  EXPECT_EQ(n.trusts, 4);
  EXPECT_EQ(n.oldest_s, 1600000000);
  EXPECT_EQ(n.newest_s, 1700000000);
  EXPECT_GT(n.bytes, 0);
}

}  // namespace
}  // namespace coconet
