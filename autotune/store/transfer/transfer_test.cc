#include "autotune/store/transfer/transfer.h"

#include <array>
#include <memory>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/transfer/diff.h"
#include "autotune/store/upkeep/use_rows.h"
#include "autotune/testing/tuning_cache_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Status CheckNoX(absl::string_view trace) {
  return absl::StrContains(trace, "X") ? absl::InvalidArgumentError("a trace with X")
                                       : absl::OkStatus();
}

class TransferTest : public TuningCacheTest {
 protected:
  /// What the cache exports of all its records.
  static std::string ExportOf(TuningCache& cache) {
    std::ostringstream out;
    EXPECT_TRUE(ExportTo(out, *cache.db(), [](const TuningRecord&) { return true; }).ok());
    return out.str();
  }
  static absl::StatusOr<ImportSummary> Import(TuningCache& into, const std::string& text,
                                              bool dry_run = false) {
    std::istringstream in(text);
    const ImportTerms terms{dry_run, CheckNoX};
    return ImportFrom(*into.db(), in, terms);
  }
  std::unique_ptr<TuningCache> OpenOther() {
    return TuningCache::Open(dir_ / "other" / "tuning.db",
                             [this](absl::string_view text) { warnings_.emplace_back(text); });
  }
  /// What an export of this one record reads.
  std::string ExportOfOne(const TuningRecord& record, std::vector<VariantResult> variants) {
    const std::unique_ptr<TuningCache> other = OpenOther();
    other->Store(record, variants);
    const std::string text = ExportOf(*other);
    other->Forget(record.key);
    return text;
  }
};

TEST_F(TransferTest, ARecordComesBackWithAllItsDigits) {
  VariantResult odd = fast_;
  odd.timing = {1.0 / 3, 0.1, 1e11 / 7, 20};
  odd.load = 0.1 + 0.2;
  odd.schedule = "fuse(\"RS\", \\, \n \x01 \xc3\xa9)";
  TuningRecord record = Record("adam\t\"x\"", odd, slow_);
  record.search = {5, 4, 3, 2, 1.0 / 7, 0.7, 6};
  record.soft = "driver 1";
  record.runner_up = "AR";
  Open()->Store(record, {odd, slow_});
  const std::unique_ptr<TuningCache> other = OpenOther();
  const ImportSummary summary = Import(*other, ExportOf(*Open())).value();
  EXPECT_EQ(summary.added, 1);
  EXPECT_THAT(summary.rejected, IsEmpty());
  TuningRecord expected = record;
  expected.trust.clear();
  expected.imported = true;
  EXPECT_TRUE(other->Find(record.key_text) == expected);
  EXPECT_TRUE(other->Variants(record.key) == Open()->Variants(record.key));
}

TEST_F(TransferTest, TheBetterRecordStays) {
  TuningRecord stored = Record("adam", fast_, slow_), offered = stored;
  stored.imported = true;
  EXPECT_FALSE(Displaces(offered, stored)) << "alike";
  offered.created_s = stored.created_s + 1;
  EXPECT_TRUE(Displaces(offered, stored));
  stored.best.timing.samples = offered.best.timing.samples + 1;
  EXPECT_FALSE(Displaces(offered, stored)) << "fewer samples, though newer";
  offered.search.runs = stored.search.runs + 1;
  EXPECT_TRUE(Displaces(offered, stored)) << "more runs";
  offered.complete = false;
  EXPECT_FALSE(Displaces(offered, stored)) << "complete over incomplete";
  std::swap(offered, stored);
  EXPECT_TRUE(Displaces(offered, stored));
  stored.complete = true;
  stored.imported = false;
  offered.search.runs = offered.best.timing.samples = 1'000'000'000;
  EXPECT_FALSE(Displaces(offered, stored)) << "measured here, and complete";
}

TEST_F(TransferTest, WhatWasMeasuredHereIsNotDisplaced) {
  const TuningRecord here = Record("adam", slow_, slow_);
  TuningRecord offered = Record("adam", fast_, slow_);
  offered.created_s += 100;
  const std::string text = ExportOfOne(offered, {fast_, slow_});
  const std::unique_ptr<TuningCache> cache = Open();
  cache->Store(here, {slow_});
  EXPECT_EQ(Import(*cache, text)->kept_certified, 1);
  EXPECT_TRUE(cache->Find(here.key_text) == here);
  cache->Retune(here.key);
  EXPECT_EQ(Import(*cache, text)->replaced, 1);
  EXPECT_EQ(cache->Find(here.key_text)->best.timing.median_us, 10);
  EXPECT_EQ(Import(*cache, text)->kept, 1);
}

TEST_F(TransferTest, VerificationsAndFailuresAreNotTaken) {
  VariantResult wrong = Variant("split(%7, flat)", 20);
  wrong.verdict = Verdict::kWrongAnswer;
  const TuningRecord record = Record("adam", fast_, slow_);
  const std::string text = ExportOfOne(record, {fast_, slow_, wrong});
  EXPECT_THAT(text, HasSubstr("wrong answer"));
  const std::unique_ptr<TuningCache> cache = Open();
  EXPECT_EQ(Import(*cache, text)->added, 1);
  EXPECT_THAT(cache->Find(record.key_text)->trust, IsEmpty());
  EXPECT_THAT(cache->Failures(record.key), IsEmpty());
}

TEST_F(TransferTest, AVariantThatFailedHereStaysLeftOut) {
  VariantResult third = Variant("split(%7, flat)", 20);
  const TuningRecord record = Record("adam", fast_, slow_);
  const std::string text = ExportOfOne(record, {fast_, slow_, third});
  const std::unique_ptr<TuningCache> cache = Open();
  third.verdict = Verdict::kWrongAnswer;
  cache->Fail(record.key, third);
  EXPECT_EQ(Import(*cache, text)->added, 1);
  EXPECT_EQ(cache->Failures(record.key).size(), 1u);
  cache->Forget(record.key);
  VariantResult best = fast_;
  best.verdict = Verdict::kWrongAnswer;
  cache->Fail(record.key, best);
  const ImportSummary summary = Import(*cache, text).value();
  ASSERT_EQ(summary.rejected.size(), 1u);
  EXPECT_EQ(summary.rejected[0].line, 2);
  EXPECT_THAT(summary.rejected[0].reason, HasSubstr("has failed here"));
}

TEST_F(TransferTest, BadLinesAreRejectedAndTheOthersTaken) {
  const std::unique_ptr<TuningCache> other = OpenOther();
  for (int i = 0; i < 3; ++i)
    other->Store(Record(absl::StrCat("p", i), fast_, slow_), {fast_, slow_});
  std::vector<std::string> lines = absl::StrSplit(ExportOf(*other), '\n');
  const std::string good = lines[1];
  const auto with = [&](const std::string& from, const std::string& to) {
    const std::string bad = absl::StrReplaceAll(good, {{from, to}});
    EXPECT_NE(bad, good) << from;
    return bad;
  };
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"{", "no JSON"},
      {with("\"complete\": true", "\"complete\": 1"), "field complete: want true or false"},
      {with("\"soft\"", "\"sift\""), "field soft: want a text"},
      {with("\"soft\"", "\"x\": 1, \"soft\""), "want 14 fields, have 15"},
      {with("ranks: 2", "ranks: 3"), "the key is not that of its text"},
      {with("\"median_us\": 10,", "\"median_us\": -10,"), "want 0 <= low"},
      {with("\"median_us\": 10,", "\"median_us\": 1e300,"), "want 0 <= low"},
      {with("\"samples\": 20", "\"samples\": 99999999999"), "out of range"},
      {with("\"verdict\": \"measured\"", "\"verdict\": \"splendid\""), "no verdict"},
      {with("vec=16", "vec=17777777777777777777777"), "vec"},
      {with("split(%1", "X(%1"), "a trace with X"},
      {with("\"best\": 0", "\"best\": 2"), "want two of 2 variants"},
      {with("\"created_s\": 1700000000", "\"created_s\": 99999999999"), "not in the past"},
      {good, "before it is as good"},
  };
  std::string text = lines[0] + "\n" + good + "\n";
  for (const auto& [line, reason] : bad) text += line + "\n";
  text += lines[2] + "\n" + lines[3];
  const std::unique_ptr<TuningCache> cache = Open();
  const ImportSummary summary = Import(*cache, text).value();
  EXPECT_EQ(summary.added, 3);
  ASSERT_EQ(summary.rejected.size(), bad.size());
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(summary.rejected[i].line, static_cast<int64_t>(i) + 3);
    EXPECT_THAT(summary.rejected[i].reason, HasSubstr(bad[i].second)) << bad[i].first;
  }
  EXPECT_EQ(cache->List().size(), 3u);
}

TEST_F(TransferTest, WhatIsNoExportIsRefused) {
  const std::unique_ptr<TuningCache> cache = Open();
  const std::string line = ExportOfOne(Record("adam", fast_, slow_), {fast_, slow_});
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("hello"), std::string("{}"),
        line.substr(line.find('\n') + 1), std::string("{\"format\": \"coconet tuning records\"}"),
        line + std::string(kLongestLine + 1, ' ')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Import(*cache, text).status())) << text.substr(0, 80);
  }
  const absl::Status newer =
      Import(*cache, absl::StrReplaceAll(line, {{"\"version\": 1", "\"version\": 2"}})).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(newer)) << newer;
  EXPECT_THAT(std::string(newer.message()), HasSubstr("version 2 of the format"));
  EXPECT_THAT(cache->List(), IsEmpty()) << "something was committed";
}

SizeBucket BucketOf(const TuningRecord& record, int64_t lo, int64_t hi) {
  SizeBucket bucket;
  bucket.box = {{"K", {8, 8}}, {"N", {lo, hi}}};
  bucket.key = record.key;
  bucket.trace = record.best.trace;
  bucket.schedule = record.best.schedule;
  bucket.config = record.best.config;
  bucket.first = {lo, 1.0 / 3, 30};
  bucket.last = {hi, 20, 25};
  bucket.bracket = 1.19;
  bucket.code = {std::string(64, 'a')};
  bucket.machine = "there";
  bucket.checks = "all";
  return bucket;
}

TEST_F(TransferTest, BucketsOfSizesGoWithTheirRecordUnverified) {
  const std::string family = "ranks: 2\nprogram: \"adam\" N\n";
  const TuningRecord record = Record("adam", fast_, slow_);
  const SizeBucket low = BucketOf(record, 1, 100), high = BucketOf(record, 101, 1000);
  const std::unique_ptr<TuningCache> other = OpenOther(), cache = Open();
  other->Store(record, {fast_, slow_});
  other->StoreBuckets(family, {low, high});
  const std::string text = ExportOf(*other);
  EXPECT_EQ(Import(*cache, text)->buckets, 2);
  SizeBucket expected[] = {low, high};
  for (SizeBucket& bucket : expected) {
    bucket.code.clear();
    bucket.machine = bucket.checks = "";
  }
  EXPECT_THAT(cache->FindBuckets(family), ElementsAre(expected[0], expected[1]));
  EXPECT_EQ(Import(*cache, text)->buckets, 0) << "those that are stored stay";
  EXPECT_THAT(cache->FindBuckets(family), ElementsAre(expected[0], expected[1]));
  EXPECT_EQ(ExportOf(*cache).substr(ExportOf(*cache).find('\n')), text.substr(text.find('\n')));
  // A cache that has the record, but no buckets, gets those whose variant has not failed there.
  cache->ForgetBucket(family, low);
  EXPECT_EQ(Import(*cache, text)->buckets, 2);
  absl::StatusOr<Database> from = OpenUnchanged(other->file(), /*foreign=*/true);
  cache->Forget(record.key);
  EXPECT_EQ(MergeFrom(*cache->db(), *from, {false, CheckNoX})->buckets, 2);
  cache->PruneNow({.bytes = 0}).IgnoreError();
  EXPECT_EQ(cache->db()->QueryInt("SELECT count(*) FROM family").value(), 0);
}

TEST_F(TransferTest, BadBucketsAreRejectedWithTheirRecord) {
  const TuningRecord record = Record("adam", fast_, slow_);
  const std::unique_ptr<TuningCache> other = OpenOther(), cache = Open();
  other->Store(record, {fast_, slow_});
  other->StoreBuckets("family", {BucketOf(record, 1, 100)});
  const std::string good = ExportOf(*other);
  for (const auto& [from, to, reason] : std::vector<std::array<std::string, 3>>{
           {"\"family\": \"family\"", "\"family\": \"\"", "want the text of a family"},
           {"N=1..100", "N=7..3", "the smaller first"},
           {"N=1..100", "N", "want SYMBOL=SIZE"},
           {"\"bracket\": 1.19", "\"bracket\": 0.5", "its bracket makes no sense"},
           {"\"bracket\": 1.19", "\"bracket\": null", "field bracket: want a number"},
           {"\"baseline_us\": 25", "\"baseline_us\": -1", "its time makes no sense"},
           {"\"size\": 100", "\"size\": 0", "its tuned size makes no sense"},
           {"\"buckets\": [{", "\"buckets\": [7, {", "buckets: want objects"}}) {
    const std::string bad = absl::StrReplaceAll(good, {{from, to}});
    ASSERT_NE(bad, good) << from;
    const ImportSummary summary = Import(*cache, bad).value();
    ASSERT_EQ(summary.rejected.size(), 1u) << to;
    EXPECT_THAT(summary.rejected[0].reason, HasSubstr(reason));
  }
  EXPECT_THAT(cache->List(), IsEmpty());
}

TEST_F(TransferTest, ADiffSaysWhichSizesRunOtherVariants) {
  const std::unique_ptr<TuningCache> a = Open(), b = OpenOther();
  const TuningRecord fast = Record("adam", fast_, slow_), slow = Record("adam", slow_, slow_);
  a->Store(fast, {fast_, slow_});
  b->Store(slow, {fast_, slow_});
  a->StoreBuckets("family", {BucketOf(fast, 1, 100), BucketOf(slow, 101, 1000)});
  b->StoreBuckets("family", {BucketOf(slow, 1, 1000)});
  b->StoreBuckets("another", {BucketOf(slow, 1, 1000)});
  const CacheDiff diff = DiffOf(*a->db(), *b->db()).value();
  ASSERT_EQ(diff.sizes.size(), 2u);
  EXPECT_EQ(Text(diff.sizes[0].box), "K=8 N=1..100");
  EXPECT_FALSE(diff.sizes[0].same_variant);
  EXPECT_TRUE(diff.sizes[1].same_variant);
}

TEST_F(TransferTest, ADryRunChangesNothing) {
  const std::string text = ExportOfOne(Record("adam", fast_, slow_), {fast_, slow_});
  const std::unique_ptr<TuningCache> cache = Open();
  EXPECT_EQ(Import(*cache, text, /*dry_run=*/true)->added, 1);
  EXPECT_THAT(cache->List(), IsEmpty());
}

TEST_F(TransferTest, CachesAreMerged) {
  const std::unique_ptr<TuningCache> cache = Open(), other = OpenOther();
  cache->Store(Record("here", fast_, slow_), {fast_, slow_});
  other->Store(Record("there", fast_, slow_), {fast_, slow_});
  other->Store(Record("here", slow_, slow_), {slow_});
  other->Store(Record("broken", fast_, slow_), {fast_, slow_});
  ASSERT_TRUE(other->db()
                  ->Execute("UPDATE program SET text = 'program: x' WHERE text LIKE '%broken%'")
                  .ok());
  absl::StatusOr<Database> from = OpenUnchanged(other->file(), /*foreign=*/true);
  ASSERT_TRUE(from.ok()) << from.status();
  const ImportSummary summary = MergeFrom(*cache->db(), *from, {false, CheckNoX}).value();
  EXPECT_EQ(summary.offered, 3);
  EXPECT_EQ(summary.added, 1);
  EXPECT_EQ(summary.kept_certified, 1);
  ASSERT_EQ(summary.rejected.size(), 1u);
  EXPECT_THAT(summary.rejected[0].reason, HasSubstr("the key is not that of its text"));
  EXPECT_TRUE(cache->Find(Record("there", fast_, slow_).key_text)->imported);
  EXPECT_EQ(cache->db()->QueryText("PRAGMA foreign_key_check").value(), "");
}

TEST_F(TransferTest, ADiffSaysWhatAFlipCosts) {
  const std::unique_ptr<TuningCache> a = Open(), b = OpenOther();
  const VariantResult fast_in_b = Variant(fast_.trace, 36);
  a->Store(Record("adam", fast_, slow_), {fast_, slow_});      // 10 and 30 us
  b->Store(Record("adam", slow_, slow_), {fast_in_b, slow_});  // 36 and 30 us
  a->Store(Record("same", fast_, slow_), {fast_, slow_});
  b->Store(Record("same", fast_, slow_), {fast_, slow_});
  const VariantResult unknown = Variant("split(%5, flat)", 5);
  a->Store(Record("unknown", unknown, slow_), {unknown, slow_});
  b->Store(Record("unknown", fast_, slow_), {fast_, slow_});
  a->Store(Record("a", fast_, slow_), {fast_, slow_});
  b->Store(Record("b", fast_, slow_), {fast_, slow_});
  const CacheDiff diff = DiffOf(*a->db(), *b->db()).value();
  ASSERT_EQ(diff.both.size(), 3u);
  ASSERT_EQ(diff.only_a.size(), 1u);
  ASSERT_EQ(diff.only_b.size(), 1u);
  EXPECT_EQ(diff.only_a[0].key, Record("a", fast_, slow_).key);
  for (const RecordPair& pair : diff.both) {
    if (pair.a.key == Record("adam", fast_, slow_).key) {
      EXPECT_FALSE(pair.same_winner);
      EXPECT_NEAR(pair.a_in_b.value(), 0.2, 1e-12);
      EXPECT_NEAR(pair.b_in_a.value(), 2, 1e-12);
    } else if (pair.a.key == Record("same", fast_, slow_).key) {
      EXPECT_TRUE(pair.same_winner);
      EXPECT_EQ(pair.a_in_b.value(), 0);
    } else {
      EXPECT_FALSE(pair.a_in_b.has_value()) << "it has no time there";
      EXPECT_FALSE(pair.b_in_a.has_value());
    }
  }
}

/// Changes a text here and there: bytes, pieces, and words that matter to the format.
std::string Mutated(std::string text, std::mt19937_64& random) {
  const auto at = [&](size_t most) { return static_cast<size_t>(random() % (most + 1)); };
  static constexpr absl::string_view kWords[] = {"{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 "\"",
                                                 ",",
                                                 ":",
                                                 "\n",
                                                 "null",
                                                 "true",
                                                 "-1",
                                                 "1e999",
                                                 "99999999999999999999",
                                                 "\\u0000",
                                                 "\\",
                                                 "nan",
                                                 "\xff",
                                                 "\"key\"",
                                                 "0.5",
                                                 "-0",
                                                 "1e-400",
                                                 "9223372036854775807"};
  for (size_t edits = 1 + at(3); edits > 0; --edits) {
    const size_t begin = at(text.size()), length = at(std::min<size_t>(text.size() - begin, 40));
    switch (random() % 5) {
      case 0:
        text.erase(begin, length);
        break;
      case 1:
        text.insert(begin, std::string(kWords[at(std::size(kWords) - 1)]));
        break;
      case 2:
        text.replace(begin, length, std::string(kWords[at(std::size(kWords) - 1)]));
        break;
      case 3:
        text.insert(at(text.size()), text.substr(begin, length));
        break;
      default:
        if (begin < text.size()) text[begin] = static_cast<char>(random());
    }
  }
  return text;
}

TEST_F(TransferTest, MutatedExportsNeverLeaveWhatIsInvalid) {
  constexpr uint64_t kSeed = 20261130;
  constexpr int kInputs = 800;
  std::mt19937_64 random(kSeed);
  std::string text;
  {
    const std::unique_ptr<TuningCache> other = OpenOther();
    for (int i = 0; i < 3; ++i)
      other->Store(Record(absl::StrCat("p", i), fast_, slow_), {fast_, slow_});
    text = ExportOf(*other);
  }
  const std::unique_ptr<TuningCache> cache = Open();
  const TuningRecord mine = Record("mine", fast_, slow_);
  cache->Store(mine, {fast_, slow_});
  int accepted = 0, rejected = 0, refused = 0;
  for (int i = 0; i < kInputs; ++i) {
    const absl::StatusOr<ImportSummary> summary = Import(*cache, Mutated(text, random));
    if (!summary.ok()) {
      ++refused;
      ASSERT_TRUE(absl::IsInvalidArgument(summary.status()) ||
                  absl::IsFailedPrecondition(summary.status()))
          << "input " << i << " of seed " << kSeed << ": " << summary.status();
      continue;
    }
    rejected += static_cast<int>(summary->rejected.size());
    accepted += static_cast<int>(summary->added + summary->replaced + summary->kept);
    for (const auto& [line, reason] : summary->rejected) ASSERT_NE(reason, "") << line;
    // List warns of invalid rows.
    for (const TuningRecord& record : cache->List()) {
      ASSERT_TRUE(Validate(record).ok()) << "input " << i << " of seed " << kSeed;
      ASSERT_TRUE(record.key == mine.key || (record.imported && record.trust.empty()));
      for (const VariantResult& v : cache->Variants(record.key)) ASSERT_TRUE(Validate(v).ok());
    }
    ASSERT_THAT(warnings_, IsEmpty()) << "input " << i << " of seed " << kSeed;
    if (i % 10 == 0) {
      for (const std::string& key : cache->Keys()) {
        if (key != mine.key) cache->Forget(key);
      }
    }
  }
  EXPECT_GT(accepted, kInputs / 10);
  EXPECT_GT(rejected, kInputs / 10);
  EXPECT_GT(refused, kInputs / 100);
  EXPECT_TRUE(cache->Find(mine.key_text) == mine);
}

}  // namespace
}  // namespace coconet
