#include "autotune/store/families/bucket_rows.h"

#include "autotune/testing/tuning_cache_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BucketRowsTest : public TuningCacheTest {
 protected:
  BucketRowsTest() : record_(Record("adam", fast_, slow_)) {}

  SizeBucket Bucket(int64_t lo, int64_t hi) const {
    SizeBucket bucket;
    bucket.box = {{"N", {lo, hi}}};
    bucket.key = record_.key;
    bucket.trace = fast_.trace;
    bucket.schedule = fast_.schedule;
    bucket.config.vec = 16;
    bucket.first = {lo, 10, 30};
    bucket.last = {hi, 20, 25};
    bucket.bracket = 1.19;
    bucket.code = {std::string(64, 'a'), std::string(64, 'b')};
    bucket.machine = "here";
    bucket.checks = "at 4 small sizes";
    return bucket;
  }
  std::unique_ptr<TuningCache> WithRecord() {
    std::unique_ptr<TuningCache> cache = Open();
    cache->Store(record_, {slow_, fast_});
    return cache;
  }

  const TuningRecord record_;
  const std::string family_ = "ranks: 2\nprogram: adam N\n";
};

TEST_F(BucketRowsTest, AreStoredAndFound) {
  const SizeBucket low = Bucket(1, 100), high = Bucket(101, 1000);
  WithRecord()->StoreBuckets(family_, {low, high});
  const std::unique_ptr<TuningCache> cache = Open();
  EXPECT_THAT(cache->FindBuckets(family_), ElementsAre(low, high));
  EXPECT_THAT(cache->FindBuckets("another"), IsEmpty());
  EXPECT_EQ(DecodeBucket(Encode(low)).value(), low);
  cache->ForgetBucket("another", low);
  EXPECT_EQ(cache->FindBuckets(family_).size(), 2u);
  cache->ForgetBucket(family_, low);
  EXPECT_THAT(cache->FindBuckets(family_), IsEmpty()) << "both are of one variant";
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(BucketRowsTest, WhatIsVerifiedIsAdded) {
  const std::unique_ptr<TuningCache> cache = WithRecord();
  cache->StoreBuckets(family_, {Bucket(1, 100)});
  SizeBucket narrow = Bucket(10, 20);  // as a job over fewer sizes has it
  narrow.code = {std::string(64, 'd')};
  cache->ConfirmBucket(family_, narrow);
  SizeBucket both = Bucket(1, 100);
  both.code.insert(both.code.begin(), std::string(64, 'd'));
  EXPECT_THAT(cache->FindBuckets(family_), ElementsAre(both));
  narrow.machine = std::string(16, 'e');
  cache->ConfirmBucket(family_, narrow);
  EXPECT_EQ(cache->FindBuckets(family_)[0].code, narrow.code) << "on another machine";
}

TEST_F(BucketRowsTest, AVariantThatFailedIsTrustedAtNoSize) {
  const std::unique_ptr<TuningCache> cache = WithRecord();
  cache->StoreBuckets(family_, {Bucket(1, 100)});
  VariantResult wrong = fast_;
  wrong.config = Bucket(1, 100).config;
  wrong.verdict = Verdict::kWrongAnswer;
  cache->Fail(std::string(64, '9'), wrong);  // of a size without a bucket of its own
  ASSERT_EQ(cache->FindBuckets(family_).size(), 1u);
  EXPECT_THAT(cache->FindBuckets(family_)[0].code, IsEmpty());
  cache->Fail(record_.key, wrong);
  cache->Store(record_, {slow_, fast_});
  EXPECT_THAT(cache->FindBuckets(family_), IsEmpty());
}

TEST_F(BucketRowsTest, OthersKeepTheSizesThatANewOneDoesNotHave) {
  const std::unique_ptr<TuningCache> cache = WithRecord();
  const SizeBucket low = Bucket(1, 100), high = Bucket(101, 1000), middle = Bucket(90, 100);
  cache->StoreBuckets(family_, {low, high});
  cache->StoreBuckets(family_, {middle});
  SizeBucket rest = low;
  rest.box["N"] = {1, 89};
  EXPECT_THAT(cache->FindBuckets(family_), ElementsAre(high, rest, middle));
}

TEST_F(BucketRowsTest, GoWithTheirRecord) {
  const std::unique_ptr<TuningCache> cache = WithRecord();
  cache->StoreBuckets(family_, {Bucket(1, 100)});
  cache->Forget(record_.key);
  EXPECT_THAT(cache->FindBuckets(family_), IsEmpty());
  cache->Store(record_, {slow_, fast_});
  EXPECT_THAT(cache->FindBuckets(family_), IsEmpty());
}

TEST_F(BucketRowsTest, AreDistrustedWithTheirRecord) {
  const std::unique_ptr<TuningCache> cache = WithRecord();
  cache->StoreBuckets(family_, {Bucket(1, 100)});
  cache->Distrust(record_.key);
  ASSERT_EQ(cache->FindBuckets(family_).size(), 1u);
  EXPECT_THAT(cache->FindBuckets(family_)[0].code, IsEmpty());
}

TEST_F(BucketRowsTest, SenselessRowsAreIgnoredWithAWarning) {
  for (const char* edit :
       {"sizes = 'N=7..3'", "sizes = 'N'", "key = replace(key, substr(key, 1, 1), 'Z')",
        "config = 'vec=many'", "code = 'x'", "first_us = 9e999", "last_size = 1 << 60"}) {
    warnings_.clear();
    WithRecord()->StoreBuckets(family_, {Bucket(1, 100), Bucket(101, 1000)});
    Tamper(absl::StrCat("UPDATE bucket SET ", edit, " WHERE sizes = 'N=1..100'"));
    EXPECT_THAT(Open()->FindBuckets(family_), ElementsAre(Bucket(101, 1000))) << edit;
    // A bucket of another key is one whose record is not in the file.
    if (absl::StrContains(edit, "key =")) continue;
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("a bucket of sizes makes no sense"))) << edit;
  }
}

TEST_F(BucketRowsTest, AFileOfTheSchemaBeforeIsMigrated) {
  const std::unique_ptr<TuningCache> made = WithRecord();
  Tamper("DROP TABLE bucket; DROP TABLE family; PRAGMA user_version=8");
  const std::unique_ptr<TuningCache> cache = Open();
  EXPECT_TRUE(cache->Find(record_.key_text).has_value());
  EXPECT_THAT(cache->FindBuckets(family_), IsEmpty());
  cache->StoreBuckets(family_, {Bucket(1, 100)});
  EXPECT_THAT(cache->FindBuckets(family_), ElementsAre(Bucket(1, 100)));
}

}  // namespace
}  // namespace coconet
