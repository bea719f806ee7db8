#include "autotune/store/layers/layers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "autotune/store/tuning_cache.h"
#include "autotune/testing/tuning_cache_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(LayersOf, TakesWhatTheEnvironmentSays) {
  Env env;
  env.cache_dir = "/home";
  env.job_cache = "/job.db";
  env.site_cache = "/site.db";
  const CacheLayers layers = LayersOf(env, "");
  EXPECT_EQ(layers.user, "/home/tuning.db");
  EXPECT_THAT(layers.foreign, ElementsAre(ForeignFile{Layer::kJob, "/job.db"},
                                          ForeignFile{Layer::kSite, "/site.db"}));
  EXPECT_FALSE(layers.read_only);
  EXPECT_THAT(LayersOf(env, ":none:").foreign, IsEmpty());
  env.cache_mode = CacheMode::kReadOnly;
  EXPECT_TRUE(LayersOf(env, "/mine.db").read_only);
  env.cache_mode = CacheMode::kOff;
  EXPECT_EQ(LayersOf(env, "/mine.db").user, ":none:");
  EXPECT_THAT(LayersOf(env, "/mine.db").foreign, IsEmpty());
  env.cache_mode = CacheMode::kUnknown;
  EXPECT_THAT(LayersOf(env, "").warning, HasSubstr("want off, readonly or readwrite"));
}

TEST(ShippedCache, LiesBesideTheProgramOrInItsShare) {
  const fs::path root = fs::canonical(::testing::TempDir()) / absl::StrCat("shipped_", getpid());
  fs::create_directories(root / "bin");
  fs::create_directories(root / "share" / "coconet");
  fs::copy_file("autotune/store/store_worker", root / "bin" / "program");
  const auto expect = [&](const std::string& file) {
    FILE* const out = popen((root / "bin" / "program").c_str(), "r");
    ASSERT_NE(out, nullptr);
    std::string text(4096, 0);
    text.resize(fread(text.data(), 1, text.size(), out));
    EXPECT_EQ(pclose(out), 0);
    EXPECT_EQ(text, file);
  };
  expect("");
  const fs::path shared = root / "share" / "coconet" / "tuning.db";
  const fs::path beside = root / "bin" / "coconet_tuning.db";
  std::ofstream(shared) << "x";
  expect(shared);
  std::ofstream(beside) << "x";
  expect(beside);
  fs::remove_all(root);
}

/// Caches of all layers in a folder.
class LayersTest : public TuningCacheTest {
 protected:
  std::string FileOf(Layer layer) const { return dir_ / std::string(Name(layer)) / "tuning.db"; }
  /// Stores a record in the layer's own file.
  void Put(Layer layer, const TuningRecord& record) {
    TuningCache::Open(FileOf(layer), [](absl::string_view text) {
      FAIL() << text;
    })->Store(record, {record.best, record.baseline});
  }
  std::unique_ptr<TuningCache> OpenLayers(bool read_only = false) {
    CacheLayers layers;
    layers.user = FileOf(Layer::kUser);
    layers.read_only = read_only;
    for (Layer layer : {Layer::kJob, Layer::kSite, Layer::kShipped}) {
      if (fs::exists(FileOf(layer))) layers.foreign.push_back({layer, FileOf(layer)});
    }
    return TuningCache::Open(layers,
                             [this](absl::string_view text) { warnings_.emplace_back(text); });
  }
  /// All files of a layer with their contents.
  std::string Contents(Layer layer) const {
    std::string all;
    for (const auto& entry : fs::directory_iterator(fs::path(FileOf(layer)).parent_path())) {
      std::ifstream in(entry.path(), std::ios::binary);
      all += entry.path().filename().string() + ":" +
             std::string(std::istreambuf_iterator<char>(in), {}) + "\n";
    }
    return all;
  }
  double Found(TuningCache& cache) {
    const std::optional<TuningRecord> found = cache.Find(Record("adam", fast_, slow_).key_text);
    return found.has_value() ? found->best.timing.median_us : 0;
  }
  TuningRecord Adam(double us) { return Record("adam", Variant("split(%1, flat)", us), slow_); }
};

TEST_F(LayersTest, TheFirstThatHasARecordCounts) {
  Put(Layer::kShipped, Adam(4));
  EXPECT_EQ(Found(*OpenLayers()), 4);
  Put(Layer::kSite, Adam(3));
  EXPECT_EQ(Found(*OpenLayers()), 3);
  Put(Layer::kUser, Adam(2));
  EXPECT_EQ(Found(*OpenLayers()), 2);
  Put(Layer::kJob, Adam(5));
  EXPECT_EQ(Found(*OpenLayers()), 5);
  std::vector<std::string> listed;
  for (const LayeredRecord& r : OpenLayers()->ListLayers())
    listed.push_back(absl::StrCat(Name(r.layer), r.shadowed ? " not used" : ""));
  EXPECT_THAT(listed, ElementsAre("job", "user not used", "site not used", "shipped not used"));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(LayersTest, AnIncompleteRecordOfTheJobGivesWayToACompleteOne) {
  TuningRecord partial = Adam(5);
  partial.complete = false;
  Put(Layer::kJob, partial);
  EXPECT_EQ(Found(*OpenLayers()), 5);
  Put(Layer::kUser, Adam(2));
  EXPECT_EQ(Found(*OpenLayers()), 2);
}

TEST_F(LayersTest, OthersVerificationsAreNotBelievedAndOursAreKept) {
  Put(Layer::kSite, Adam(3));
  const std::string before = Contents(Layer::kSite);
  const std::unique_ptr<TuningCache> cache = OpenLayers();
  const std::optional<TuningRecord> found = cache->Find(Adam(3).key_text);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->trust, IsEmpty());
  const Trust trust{"code", "here", "all", 1700000001};
  cache->AddTrust(found->key, found->best, trust);
  EXPECT_THAT(OpenLayers()->Find(Adam(3).key_text)->trust, ElementsAre(trust));
  // The user's file has the verification, but neither a record nor the other's time.
  EXPECT_THAT(cache->List(), IsEmpty());
  for (const VariantResult& v :
       TuningCache::Open(FileOf(Layer::kUser), nullptr)->Variants(found->key))
    EXPECT_EQ(v.timing.samples, 0);
  EXPECT_EQ(Contents(Layer::kSite), before) << "another layer was written";
}

TEST_F(LayersTest, WhatIsTunedGoesToTheUsersFile) {
  Put(Layer::kSite, Adam(3));
  const std::string before = Contents(Layer::kSite);
  const std::unique_ptr<TuningCache> cache = OpenLayers();
  cache->Store(Adam(2), {Adam(2).best, slow_});
  cache->Retune(Adam(2).key);
  EXPECT_EQ(Found(*cache), 2);
  EXPECT_EQ(Contents(Layer::kSite), before);
}

TEST_F(LayersTest, ARecordThatIsToBeTunedOnIsCopied) {
  Put(Layer::kSite, Adam(3));
  const std::unique_ptr<TuningCache> cache = OpenLayers();
  cache->MarkStale(Adam(3).key, "driver 2");
  const std::vector<TuningRecord> own = cache->List();
  ASSERT_EQ(own.size(), 1u);
  EXPECT_TRUE(own[0].imported);
  EXPECT_FALSE(own[0].complete);
  EXPECT_EQ(own[0].soft, "driver 2");
  EXPECT_THAT(own[0].trust, IsEmpty());
  EXPECT_EQ(cache->Variants(own[0].key).size(), 2u);
}

TEST_F(LayersTest, AVariantThatFailedHereIsNotTakenFromOthers) {
  Put(Layer::kJob, Adam(3));
  const std::unique_ptr<TuningCache> cache = OpenLayers();
  ASSERT_EQ(Found(*cache), 3);
  VariantResult wrong = Adam(3).best;
  wrong.verdict = Verdict::kWrongAnswer;
  wrong.reason = "element 3";
  cache->Fail(Adam(3).key, wrong);
  EXPECT_EQ(Found(*cache), 0);
  cache->Forgive(Adam(3).key);
  EXPECT_EQ(Found(*cache), 3);
}

TEST_F(LayersTest, InvalidRowsOfOthersAreMisses) {
  for (const char* sql : {"UPDATE variant SET median_us = 9e999", "UPDATE variant SET config = 'x'",
                          "UPDATE program SET text = 'program: other'",
                          "UPDATE variant SET verdict = 'wrong answer'"}) {
    fs::remove_all(dir_);
    warnings_.clear();
    Put(Layer::kSite, Adam(3));
    file_ = FileOf(Layer::kSite);
    Tamper(sql);
    EXPECT_EQ(Found(*OpenLayers()), 0) << sql;
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("makes no sense"))) << sql;
  }
}

TEST_F(LayersTest, UnsafeAndDamagedFilesOfOthersAreNotUsed) {
  const std::string site = FileOf(Layer::kSite), folder = fs::path(site).parent_path();
  const auto expect = [&](const char* words) {
    warnings_.clear();
    EXPECT_EQ(Found(*OpenLayers()), 0) << words;
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr(words)));
  };
  Put(Layer::kSite, Adam(3));
  chmod(site.c_str(), 0660);
  expect("may be written by others");
  chmod(site.c_str(), 0600);
  chmod(folder.c_str(), 0777);
  expect("its folder may be written by others");
  chmod(folder.c_str(), 0700);
  file_ = site;
  Tamper("PRAGMA user_version=99");
  expect("newer version");
  Tamper("PRAGMA user_version=8; CREATE VIEW v AS SELECT 1");
  expect("views or triggers");
  Overwrite(std::string(5000, 'x'));
  expect("not a database");
  EXPECT_EQ(FilesWith("corrupt"), 0) << "another layer's file was moved";
}

TEST_F(LayersTest, AReadOnlyUserIsLeftUnchanged) {
  EXPECT_EQ(Found(*OpenLayers(/*read_only=*/true)), 0);
  EXPECT_FALSE(fs::exists(FileOf(Layer::kUser)));
  Put(Layer::kUser, Adam(2));
  const std::string before = Contents(Layer::kUser);
  const std::unique_ptr<TuningCache> cache = OpenLayers(/*read_only=*/true);
  EXPECT_FALSE(cache->stores());
  EXPECT_EQ(Found(*cache), 2);
  cache->Store(Adam(1), {Adam(1).best, slow_});
  cache->Begin(Adam(1).key, slow_);
  cache->Fail(Adam(1).key, slow_);
  cache->Forget(Adam(1).key);
  cache->CheckWhole();
  EXPECT_FALSE(cache->Pin(Adam(1).key, slow_).ok());
  EXPECT_EQ(Found(*cache), 2);
  EXPECT_EQ(Contents(Layer::kUser), before);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(LayersTest, AFileThatOthersWriteIsReadAsItIs) {
  Put(Layer::kSite, Adam(3));
  const std::unique_ptr<TuningCache> writer =
      TuningCache::Open(FileOf(Layer::kSite), [](absl::string_view text) { FAIL() << text; });
  const std::unique_ptr<TuningCache> reader = OpenLayers();
  EXPECT_EQ(Found(*reader), 3);
  for (int i = 0; i < 200; ++i)
    writer->Store(Record(absl::StrCat("p", i), fast_, slow_), {fast_, slow_});
  for (int i = 0; i < 200; ++i) {
    const std::optional<TuningRecord> found =
        reader->Find(Record(absl::StrCat("p", i), fast_, slow_).key_text);
    EXPECT_TRUE(found.has_value()) << i;
  }
  EXPECT_THAT(warnings_, IsEmpty());
}

}  // namespace
}  // namespace coconet
