#include "autotune/store/tuning_cache.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/database.h"
#include "autotune/store/process_identity.h"
#include "coconet/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

VariantResult Variant(absl::string_view trace, double us) {
  VariantResult v;
  v.trace = std::string(trace);
  v.schedule = "AR; C";
  v.protocol = "library";
  v.verdict = Verdict::kMeasured;
  v.timing = {us, us - 1, us + 1, 20};
  v.bytes = 64;
  return v;
}

TuningRecord Record(absl::string_view program, const VariantResult& best,
                    const VariantResult& baseline) {
  TuningRecord r;
  r.key_text = absl::StrCat("ranks: 2\nprogram: ", program, "\nprogram: end\n");
  r.key = Fingerprint(r.key_text);
  r.best = best;
  r.baseline = baseline;
  r.variants = 2;
  r.complete = true;
  r.created_s = 1700000000;
  r.trust = {{"code", "here", "all", 1700000000}};
  return r;
}

class TuningCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(::testing::TempDir()) /
           absl::StrCat("tuning_cache_", getpid(), "_",
                        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(dir_);
    file_ = dir_ / "sub" / "tuning.db";
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::unique_ptr<TuningCache> Open() {
    return TuningCache::Open(file_,
                             [this](absl::string_view text) { warnings_.emplace_back(text); });
  }
  void Overwrite(absl::string_view text) {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << text;
  }
  /// Runs SQL that our own code never would.
  void Tamper(const std::string& sql) {
    absl::StatusOr<Database> db = Database::Open(file_, Access::kReadWrite);
    ASSERT_TRUE(db.ok()) << db.status();
    const absl::Status done = db->Execute(sql.c_str());
    ASSERT_TRUE(done.ok()) << done;
  }
  int FilesWith(absl::string_view part) {
    return std::count_if(fs::directory_iterator(file_.parent_path()), {},
                         [&](const fs::directory_entry& e) {
                           return absl::StrContains(e.path().filename().string(), part);
                         });
  }

  fs::path dir_, file_;
  std::vector<std::string> warnings_;
  const VariantResult fast_ = Variant("split(%1, flat)", 10), slow_ = Variant("", 30);
};

/// Runs `body` in a process of its own; its exit status, or -signal.
int InChild(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

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

TEST_F(TuningCacheTest, IsForItsOwnerOnly) {
  Open();
  struct stat info;
  ASSERT_EQ(stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(file_.parent_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  chmod(file_.c_str(), 0666);
  EXPECT_FALSE(Open()->stores());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("may be written by others; chmod go-w")));
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

TEST_F(TuningCacheTest, DamagedFilesAreSetAside) {
  for (absl::string_view garbage :
       {"this is no database, though it is long enough to be looked at as one",
        "SQLite format 3"}) {
    warnings_.clear();
    Open();
    Overwrite(garbage);
    std::unique_ptr<TuningCache> cache = Open();
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_THAT(warnings_[0], HasSubstr("was damaged"));
    EXPECT_THAT(warnings_[0], HasSubstr(".corrupt-"));
    const TuningRecord record = Record("adam", fast_, slow_);
    cache->Store(record, {slow_, fast_});
    EXPECT_TRUE(Open()->Find(record.key_text).has_value());
    fs::remove_all(dir_);
  }
}

TEST_F(TuningCacheTest, ADamagedPageIsFound) {
  {
    std::unique_ptr<TuningCache> cache = Open();
    for (int i = 0; i < 200; ++i)
      cache->Store(Record(absl::StrCat("p", i), fast_, slow_), {slow_, fast_});
  }
  std::fstream bytes(file_, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(3 * 4096);
  bytes << std::string(4096, '\xee');
  bytes.close();
  std::unique_ptr<TuningCache> cache = Open();
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("was damaged")));
  EXPECT_EQ(FilesWith("corrupt"), 1);
  EXPECT_TRUE(cache->stores());
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

TEST_F(TuningCacheTest, RecordsOfTheFirstSchemaAreKeptWithoutTrust) {
  const TuningRecord record = Record("adam", fast_, slow_);
  Open()->Store(record, {slow_, fast_});
  Tamper(
      "DROP TABLE trust; ALTER TABLE decision ADD COLUMN origin TEXT NOT NULL DEFAULT 'here'; "
      "DROP TABLE in_flight; ALTER TABLE variant ADD COLUMN in_flight TEXT; "
      "ALTER TABLE variant DROP COLUMN failed_runs; ALTER TABLE variant DROP COLUMN deaths; "
      "ALTER TABLE variant DROP COLUMN load; ALTER TABLE decision DROP COLUMN load; "
      "ALTER TABLE decision DROP COLUMN tried; ALTER TABLE decision DROP COLUMN drawn; "
      "ALTER TABLE decision DROP COLUMN since_gain; ALTER TABLE decision DROP COLUMN runs; "
      "ALTER TABLE decision DROP COLUMN spent_s; ALTER TABLE decision DROP COLUMN soft; "
      "PRAGMA user_version=1");
  chmod(file_.c_str(), 0400);
  const std::unique_ptr<TuningCache> reader = Open();
  if (!reader->stores()) {  // root may write all the same
    const std::optional<TuningRecord> found = reader->Find(record.key_text);
    ASSERT_TRUE(found.has_value());
    EXPECT_THAT(found->trust, IsEmpty());
  }
  chmod(file_.c_str(), 0600);
  const std::optional<TuningRecord> found = Open()->Find(record.key_text);
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->trust, IsEmpty());
  EXPECT_EQ(found->best.trace, record.best.trace);
  Open()->Store(record, {slow_, fast_});
  EXPECT_TRUE(Open()->Find(record.key_text) == record);
}

TEST_F(TuningCacheTest, NewerSchemaIsLeftAlone) {
  const TuningRecord record = Record("adam", fast_, slow_);
  Open()->Store(record, {slow_, fast_});
  Tamper("PRAGMA user_version=99");
  std::unique_ptr<TuningCache> cache = Open();
  EXPECT_FALSE(cache->stores());
  cache->Store(record, {slow_, fast_});
  EXPECT_FALSE(cache->Find(record.key_text).has_value());
  EXPECT_THAT(warnings_,
              ElementsAre(absl::StrCat(
                  "tuning cache ", file_.string(),
                  " was written by a newer version (schema 99, this one "
                  "knows 4); upgrade, or give another file: what is tuned is not kept")));
  EXPECT_EQ(FilesWith("corrupt"), 0);
}

TEST_F(TuningCacheTest, AReadOnlyFolderIsRead) {
  const TuningRecord record = Record("adam", fast_, slow_);
  VariantResult wrong = slow_;
  wrong.verdict = Verdict::kWrongAnswer;
  wrong.trace = "split(%2, flat)";
  file_ = dir_ / "su%b #?" / "tuning.db";
  Open()->Store(record, {slow_, fast_});
  Open()->Fail(record.key, wrong);
  // In a mount namespace of its own, which needs root.
  const int code = InChild([&] {
    const std::string folder = file_.parent_path();
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
        mount("", folder.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      _exit(77);
    std::unique_ptr<TuningCache> cache = Open();
    const bool found = cache->Find(record.key_text).has_value() && cache->List().size() == 1 &&
                       cache->Failures(record.key).size() == 1;
    cache->Store(record, {slow_, fast_});
    cache->Begin(record.key, fast_);
    for (const std::string& warning : warnings_) std::cerr << warning << "\n";
    _exit(found && !cache->stores() && warnings_.size() == 1 &&
                  absl::StrContains(warnings_[0], "is read-only: what is tuned is not kept")
              ? 0
              : 1);
  });
  if (code == 77) GTEST_SKIP() << "no mounts without root";
  EXPECT_EQ(code, 0);
}

TEST_F(TuningCacheTest, AFileThatWasRemovedIsBegunAnew) {
  const TuningRecord record = Record("adam", fast_, slow_);
  const std::unique_ptr<TuningCache> cache = Open();
  fs::remove_all(file_.parent_path());
  cache->Begin(record.key, fast_);
  cache->End(record.key, fast_);
  cache->Store(record, {slow_, fast_});
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("was removed while it was open")));
  EXPECT_TRUE(Open()->Find(record.key_text).has_value());
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

TEST_F(TuningCacheTest, ARecordWithoutItsVariantIsSaid) {
  const TuningRecord record = Record("adam", fast_, slow_);
  Open()->Store(record, {slow_, fast_});
  Tamper("PRAGMA foreign_keys=OFF; UPDATE decision SET best = 99999");
  EXPECT_FALSE(Open()->Find(record.key_text).has_value());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("its best variant is not in the file")));
}

TEST_F(TuningCacheTest, OtherDatabasesAreLeftAlone) {
  fs::create_directories(file_.parent_path());
  Tamper("CREATE TABLE addresses(name TEXT)");
  chmod(file_.c_str(), 0600);
  EXPECT_FALSE(Open()->stores());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("is a database of another application")));
  fs::remove_all(dir_);
  warnings_.clear();
  Open();
  Tamper("CREATE TRIGGER t AFTER INSERT ON decision BEGIN DELETE FROM variant; END");
  EXPECT_FALSE(Open()->stores());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("views or triggers")));
}

TEST_F(TuningCacheTest, WithoutAFileItRemembersNothing) {
  fs::create_directories(dir_);
  std::ofstream(dir_ / "sub") << "a file, where a folder is wanted";
  const TuningRecord record = Record("adam", fast_, slow_);
  std::unique_ptr<TuningCache> cache = Open();
  EXPECT_FALSE(cache->stores());
  cache->Begin(record.key, fast_);
  cache->End(record.key, fast_);
  cache->Store(record, {slow_, fast_});
  EXPECT_FALSE(cache->Find(record.key_text).has_value());
  EXPECT_THAT(cache->List(), IsEmpty());
  EXPECT_EQ(warnings_.size(), 1u);
  warnings_.clear();
  EXPECT_FALSE(TuningCache::Open(":none:", [](absl::string_view) { FAIL(); })->stores());
}

TEST_F(TuningCacheTest, AFullDiskIsSaidOnce) {
  const TuningRecord record = Record("adam", fast_, slow_);
  Open()->Store(record, {slow_, fast_});
  // A limit on the size of files stands in for the full disk.
  EXPECT_EQ(
      InChild([&] {
        std::unique_ptr<TuningCache> cache = Open();
        signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{96 << 10, 96 << 10};
        setrlimit(RLIMIT_FSIZE, &limit);
        std::vector<VariantResult> many = {slow_, fast_};
        for (int i = 0; i < 2000; ++i)
          many.push_back(Variant(absl::StrCat("split(%", i, ", flat)", std::string(200, 'x')), 5));
        const TuningRecord other = Record("sgd", fast_, slow_);
        cache->Store(other, many);
        cache->Store(other, many);
        const bool readable =
            cache->Find(record.key_text).has_value() && !cache->Find(other.key_text).has_value();
        _exit(readable && !cache->stores() && warnings_.size() == 1 ? 0 : 1);
      }),
      0);
  EXPECT_TRUE(Open()->Find(record.key_text).has_value());
}

TEST_F(TuningCacheTest, RowsThatMakeNoSenseAreMisses) {
  const TuningRecord record = Record("adam", fast_, slow_);
  const std::string key = record.key;
  for (const char* sql : {
           "UPDATE variant SET config = 'library vec=; chunk=2'",
           "UPDATE variant SET verdict = 'splendid'",
           "UPDATE variant SET verdict = 'wrong answer'",
           "UPDATE variant SET median_us = 9e999",
           "UPDATE variant SET low_us = 1e6",
           "UPDATE program SET text = 'program: other'",
       }) {
    warnings_.clear();
    fs::remove_all(dir_);
    Open()->Store(record, {slow_, fast_});
    Tamper(sql);
    EXPECT_FALSE(Open()->Find(record.key_text).has_value()) << sql;
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("makes no sense"))) << sql;
  }
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

TEST_F(TuningCacheTest, KilledWritersLeaveNoDamage) {
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      std::unique_ptr<TuningCache> cache = Open();
      for (int i = 0;; ++i)
        cache->Store(Record(absl::StrCat("p", i % 50), fast_, slow_), {slow_, fast_});
    }
    usleep(3000 + 5000 * round);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    std::unique_ptr<TuningCache> cache = Open();
    EXPECT_TRUE(cache->stores());
    for (const TuningRecord& record : cache->List())
      EXPECT_EQ(cache->Variants(record.key).size(), 2u);
  }
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(TuningCacheTest, ManyProcessesBeginOneFile) {
  constexpr int kProcesses = 16, kRecords = 20;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      std::unique_ptr<TuningCache> cache = Open();
      for (int i = 0; i < kRecords; ++i) {
        const TuningRecord record = Record(absl::StrCat("p", i), fast_, slow_);
        cache->Begin(record.key, fast_);
        cache->End(record.key, fast_);
        cache->Store(record, {slow_, fast_});
      }
      for (const std::string& warning : warnings_) std::cerr << warning << "\n";
      _exit(warnings_.empty() && cache->stores() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Open()->List().size(), static_cast<size_t>(kRecords));
}

TEST_F(TuningCacheTest, ManyProcessesFindOneDamagedFile) {
  Open();
  Overwrite(std::string(5000, 'x'));
  std::vector<pid_t> children;
  for (int p = 0; p < 8; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      std::unique_ptr<TuningCache> cache = Open();
      cache->Store(Record(absl::StrCat("p", p), fast_, slow_), {slow_, fast_});
      _exit(cache->stores() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(FilesWith("corrupt"), 1);
  EXPECT_EQ(Open()->List().size(), 8u);
}

TEST(ProcessIdentity, TellsTheLivingFromTheDead) {
  EXPECT_EQ(LifeOf(OwnProcess()), Life::kAlive);
  EXPECT_EQ(LifeOf("nonsense"), Life::kDead);
  EXPECT_EQ(LifeOf("otherboot/pid:[1]/1/1"), Life::kUnknown);
  std::string reused = OwnProcess();
  EXPECT_EQ(LifeOf(reused + "1"), Life::kDead) << "another start time: the pid was given out again";
  EXPECT_EQ(MachineDigest().size(), 16u);
}

}  // namespace
}  // namespace coconet
