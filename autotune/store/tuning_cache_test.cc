#include "autotune/store/tuning_cache.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "autotune/store/process_identity.h"
#include "autotune/testing/tuning_cache_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(TuningCacheTest, RemembersAcrossOpens) {
  const TuningRecord record = Record("adam", fast_, slow_);
  Open()->Store(record, {slow_, fast_});
  std::unique_ptr<TuningCache> cache = Open();
  const std::optional<TuningRecord> found = cache->Find(record.key_text);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(*found == record);
  EXPECT_FALSE(cache->Find(record.key_text + " ").has_value());
  EXPECT_TRUE(cache->FindByKey(record.key.substr(0, 8)).has_value());
  EXPECT_FALSE(cache->FindByKey("g").has_value());
  EXPECT_EQ(cache->List().size(), 1u);
  const std::vector<VariantResult> variants = cache->Variants(record.key);
  ASSERT_EQ(variants.size(), 2u);
  EXPECT_TRUE(variants[0] == fast_ && variants[1] == slow_);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(TuningCacheTest, KeepsTheBetterRecord) {
  TuningRecord partial = Record("adam", slow_, slow_);
  partial.complete = false;
  std::unique_ptr<TuningCache> cache = Open();
  cache->Store(partial, {slow_});
  EXPECT_EQ(cache->Find(partial.key_text)->best.timing.median_us, 30);
  TuningRecord faster = Record("adam", fast_, slow_);
  faster.complete = false;
  cache->Store(faster, {fast_, slow_});
  cache->Store(partial, {slow_});
  EXPECT_EQ(cache->Find(partial.key_text)->best.timing.median_us, 10);
  VariantResult slow_now = fast_;
  slow_now.timing = {40, 39, 41, 5};
  cache->Store(partial, {slow_, slow_now});
  EXPECT_EQ(cache->Find(partial.key_text)->best.timing.median_us, 30)
      << "the stored best was timed again, and is slower";
  cache->Store(Record("adam", slow_, slow_), {slow_});  // complete: replaces, even though slower
  EXPECT_EQ(cache->Find(partial.key_text)->best.timing.median_us, 30);
  cache->Store(faster, {fast_, slow_});
  EXPECT_TRUE(cache->Find(partial.key_text)->complete);
}

TEST_F(TuningCacheTest, TrustIsKeptByMachineAndFingerprint) {
  TuningRecord record = Record("adam", fast_, slow_);
  Open()->Store(record, {slow_, fast_});
  const Trust again = {"code", "here", "more", 1800000000}, there = {"code", "there", "all", 3};
  Open()->AddTrust(record.key, fast_, again);
  Open()->AddTrust(record.key, fast_, there);
  std::optional<TuningRecord> found = Open()->Find(record.key_text);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->trust, ElementsAre(again, there));
  // What another tuning stores was not verified by the earlier one.
  record.trust = {{"new code", "here", "all", 1900000000}};
  Open()->Store(record, {slow_, fast_});
  found = Open()->Find(record.key_text);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->trust, ElementsAre(record.trust[0]));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(TuningCacheTest, WhatPeopleSayOfARecordCounts) {
  const TuningRecord record = Record("adam", fast_, slow_), other = Record("sgd", fast_, slow_);
  VariantResult late = Variant("split(%9, flat)", 0);
  late.timing = {};
  late.verdict = Verdict::kTimedOut;
  for (const TuningRecord& r : {record, other}) Open()->Store(r, {slow_, fast_});
  for (int run = 0; run < 3; ++run) Open()->Fail(record.key, late);
  EXPECT_EQ(Open()->Failures(record.key).size(), 1u);
  Open()->Forgive(record.key);
  EXPECT_THAT(Open()->Failures(record.key), IsEmpty());
  Open()->Distrust(record.key);
  EXPECT_THAT(Open()->Find(record.key_text)->trust, IsEmpty());
  Open()->Retune(record.key);
  EXPECT_FALSE(Open()->Find(record.key_text)->complete);
  Open()->Forget(record.key);
  EXPECT_FALSE(Open()->Find(record.key_text).has_value());
  EXPECT_THAT(Open()->Variants(record.key), IsEmpty());
  EXPECT_TRUE(Open()->Find(other.key_text) == other);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(TuningCacheTest, FailuresAreKept) {
  const std::string key(64, 'a');
  VariantResult wrong = fast_;
  wrong.verdict = Verdict::kWrongAnswer;
  wrong.reason = "p[3]: want 1, have 2";
  std::unique_ptr<TuningCache> cache = Open();
  cache->Begin(key, fast_);
  cache->End(key, fast_);
  cache->Fail(key, wrong);
  cache->Begin(key, slow_);
  EXPECT_EQ(cache->Failures(key).size(), 1u) << "what this process runs now is no failure";
  cache->End(key, slow_);
  const std::vector<VariantResult> failures = Open()->Failures(key);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].trace, wrong.trace);
  EXPECT_EQ(failures[0].verdict, Verdict::kWrongAnswer);
  EXPECT_EQ(failures[0].reason, "wrong answer in an earlier run: p[3]: want 1, have 2");
  EXPECT_THAT(cache->Failures(std::string(64, 'b')), IsEmpty());
}

TEST_F(TuningCacheTest, WhatMayPassIsLeftOutFromTheThirdRunOn) {
  const TuningRecord record = Record("adam", fast_, slow_);
  Open()->Store(Record("adam", slow_, slow_), {slow_});
  VariantResult late = fast_;
  late.verdict = Verdict::kTimedOut;
  late.reason = "rank 1 waited 10 s";
  for (int run = 1; run <= 3; ++run) {
    EXPECT_THAT(Open()->Failures(record.key), IsEmpty());
    Open()->Fail(record.key, late);
  }
  std::vector<VariantResult> failures = Open()->Failures(record.key);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].reason, "timed out in 3 runs: rank 1 waited 10 s");
  // What a later run stores of it, which leaves it out, changes nothing.
  VariantResult left_out = failures[0];
  left_out.verdict = Verdict::kQuarantined;
  Open()->Store(Record("adam", slow_, slow_), {slow_, left_out});
  EXPECT_EQ(Open()->Failures(record.key).size(), 1u);
  // Where it runs again, the failures are forgotten.
  Open()->Store(record, {slow_, fast_});
  Open()->Fail(record.key, late);
  EXPECT_THAT(Open()->Failures(record.key), IsEmpty());
}

TEST_F(TuningCacheTest, AVariantThatTookItsProcessAlongIsLeftOutForADayThenForGood) {
  const std::string key(64, 'a');
  const auto die_in = [&](const VariantResult& variant) {
    EXPECT_EQ(InChild([&] {
                std::unique_ptr<TuningCache> cache = Open();
                cache->Begin(key, slow_);
                cache->End(key, slow_);
                cache->Begin(key, variant);
                kill(getpid(), SIGKILL);
              }),
              -SIGKILL);
  };
  die_in(fast_);
  for (int run = 0; run < 2; ++run) {
    const std::vector<VariantResult> failures = Open()->Failures(key);
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_EQ(failures[0].trace, fast_.trace);
    EXPECT_EQ(failures[0].verdict, Verdict::kQuarantined);
    EXPECT_EQ(failures[0].reason,
              "an earlier process died while it ran for the first time; it is tried again after a "
              "day");
  }
  Tamper("UPDATE variant SET updated_s = updated_s - 86500");
  EXPECT_THAT(Open()->Failures(key), IsEmpty());
  die_in(fast_);
  Tamper("UPDATE variant SET updated_s = updated_s - 86500");
  const std::vector<VariantResult> failures = Open()->Failures(key);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].reason, "an earlier process died while it ran for the first time");
}

TEST_F(TuningCacheTest, AJobThatEndsItsRunLeavesTheMarksOfOthers) {
  const std::string key(64, 'a');
  EXPECT_EQ(InChild([&] {
              Open()->Begin(key, fast_);
              kill(getpid(), SIGKILL);
            }),
            -SIGKILL);
  std::unique_ptr<TuningCache> cache = Open();
  cache->Begin(key, fast_);
  cache->End(key, fast_);
  EXPECT_EQ(cache->Failures(key).size(), 1u);
}

TEST_F(TuningCacheTest, AFailureTakesTheRecordAlong) {
  const TuningRecord record = Record("adam", fast_, slow_);
  std::unique_ptr<TuningCache> cache = Open();
  cache->Store(record, {slow_, fast_});
  VariantResult wrong = fast_;
  wrong.verdict = Verdict::kWrongAnswer;
  VariantResult late = wrong;
  late.verdict = Verdict::kTimedOut;
  cache->Fail(record.key, late);
  EXPECT_TRUE(cache->Find(record.key_text).has_value());
  cache->Fail(record.key, wrong);
  EXPECT_FALSE(cache->Find(record.key_text).has_value());
}

TEST(ProcessIdentity, TellsTheLivingFromTheDead) {
  EXPECT_EQ(LifeOf(OwnProcess()), Life::kAlive);
  EXPECT_EQ(LifeOf("nonsense"), Life::kDead);
  EXPECT_EQ(LifeOf("otherboot/pid:[1]/1/1"), Life::kUnknown);
  std::string reused = OwnProcess();
  EXPECT_EQ(LifeOf(reused + "1"), Life::kDead) << "another start time: the pid was given out again";
  EXPECT_EQ(MachineDigest().size(), 16u);
}

TEST_F(TuningCacheTest, AReaderMakesNoFile) {
  const std::string file = absl::StrCat(file_.string(), ".absent");
  const std::unique_ptr<TuningCache> cache = TuningCache::Open(
      file, [this](absl::string_view text) { warnings_.emplace_back(text); },
      TuningCache::Use::kRead);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_FALSE(cache->stores());
  EXPECT_THAT(cache->KeyTexts(), IsEmpty());
  EXPECT_THAT(warnings_, ElementsAre(::testing::HasSubstr("there is no tuning cache")));
}

TEST_F(TuningCacheTest, KnowsTheTextsOfItsKeys) {
  const TuningRecord record = Record("adam", fast_, slow_);
  const std::unique_ptr<TuningCache> cache = Open();
  cache->Store(record, {record.best, record.baseline});
  const std::vector<KeyOfRecord> keys = cache->KeyTexts();
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0].key, record.key);
  EXPECT_EQ(keys[0].key_text, record.key_text);
}

}  // namespace
}  // namespace coconet
