#include "autotune/store/tuning_cache.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "autotune/store/cache_file.h"
#include "autotune/store/database.h"
#include "autotune/testing/tuning_cache_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

/// The tuning cache is damaged in all pages but the first, which has the schema.
class DamagedPagesTest : public TuningCacheTest {
 protected:
  void SetUp() override {
    TuningCacheTest::SetUp();
    std::unique_ptr<TuningCache> cache = Open();
    for (int i = 0; i < 200; ++i)
      cache->Store(Record(absl::StrCat("p", i), fast_, slow_), {slow_, fast_});
    cache.reset();
    std::fstream bytes(file_, std::ios::in | std::ios::out | std::ios::binary);
    for (size_t page = 1; page < fs::file_size(file_) / kPage; ++page) {
      bytes.seekp(static_cast<std::streamoff>(page * kPage));
      bytes << std::string(kPage, '\xee');
    }
  }
  void ExpectSetAsideOnce(TuningCache& cache) const {
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("was damaged")));
    EXPECT_EQ(FilesWith("corrupt"), 1);
    EXPECT_TRUE(cache.stores());
  }
  static constexpr size_t kPage = 4096;
};

TEST_F(DamagedPagesTest, AreFoundByALookAtTheWhole) {
  std::unique_ptr<TuningCache> cache = Open();
  cache->CheckWhole();
  ExpectSetAsideOnce(*cache);
}

TEST_F(DamagedPagesTest, AreFoundByReading) {
  std::unique_ptr<TuningCache> cache = Open();
  EXPECT_FALSE(cache->Find(Record("p7", fast_, slow_).key_text).has_value());
  ExpectSetAsideOnce(*cache);
  EXPECT_THAT(cache->List(), IsEmpty());
}

TEST_F(DamagedPagesTest, AreFoundByWriting) {
  std::unique_ptr<TuningCache> cache = Open();
  const TuningRecord record = Record("new", fast_, slow_);
  cache->Store(record, {slow_, fast_});
  ExpectSetAsideOnce(*cache);
  EXPECT_TRUE(Open()->Find(record.key_text).has_value());
}

TEST_F(TuningCacheTest, RecordsOfTheFirstSchemaAreKeptWithoutTrust) {
  const TuningRecord record = Record("adam", fast_, slow_);
  Open()->Store(record, {slow_, fast_});
  Tamper(
      "DROP TABLE bucket; DROP TABLE family; DROP TABLE history; ALTER TABLE decision DROP COLUMN "
      "speed_up; ALTER TABLE decision DROP "
      "COLUMN speed_up_low; ALTER TABLE decision DROP COLUMN speed_up_high; ALTER TABLE decision "
      "DROP COLUMN speed_up_rounds; ALTER TABLE decision DROP COLUMN meeting_us; "
      "DROP TABLE last_use; DROP TABLE pin; ALTER TABLE decision DROP COLUMN imported; "
      "DROP INDEX decision_best; DROP INDEX decision_baseline; DROP INDEX decision_env; "
      "DROP INDEX decision_program; "
      "DROP TABLE calibration; DROP TABLE prediction; DROP TABLE trust; ALTER TABLE decision ADD "
      "COLUMN origin TEXT NOT NULL DEFAULT 'here'; "
      "DROP TABLE in_flight; ALTER TABLE variant ADD COLUMN in_flight TEXT; "
      "ALTER TABLE variant DROP COLUMN failed_runs; ALTER TABLE variant DROP COLUMN deaths; "
      "ALTER TABLE variant DROP COLUMN load; ALTER TABLE decision DROP COLUMN load; "
      "ALTER TABLE decision DROP COLUMN left_out; "
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
  EXPECT_EQ(FilesWith("backup-v1"), 1);
  Open()->Store(record, {slow_, fast_});
  EXPECT_TRUE(Open()->Find(record.key_text) == record);
  // The copy is of the old schema, for its owner only, and complete.
  file_ += ".backup-v1";
  struct stat info;
  ASSERT_EQ(stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  absl::StatusOr<Database> backup = OpenUnchanged(file_, /*foreign=*/false);
  ASSERT_TRUE(backup.ok()) << backup.status();
  EXPECT_EQ(backup->QueryInt("PRAGMA user_version").value(), 1);
  EXPECT_EQ(backup->QueryText("PRAGMA integrity_check").value(), "ok");
  EXPECT_EQ(backup->QueryInt("SELECT count(*) FROM decision").value(), 1);
}

TEST_F(TuningCacheTest, AnOlderSchemaIsOnlyReadIfItCannotBeCopied) {
  const TuningRecord record = Record("adam", fast_, slow_);
  Open()->Store(record, {slow_, fast_});
  Tamper(absl::StrCat("PRAGMA user_version=", kCacheSchemaVersion - 1));
  // A name that is too long for the copy's, but not for the file's.
  const fs::path renamed = file_.parent_path() / std::string(240, 'x');
  fs::rename(file_, renamed);
  file_ = renamed;
  const std::unique_ptr<TuningCache> cache = Open();
  EXPECT_FALSE(cache->stores());
  EXPECT_TRUE(cache->Find(record.key_text).has_value());
  EXPECT_THAT(warnings_, ::testing::Contains(HasSubstr("is only read, since no copy")));
}

TEST_F(TuningCacheTest, NewerSchemaIsLeftAlone) {
  const TuningRecord record = Record("adam", fast_, slow_);
  Open()->Store(record, {slow_, fast_});
  Tamper("PRAGMA user_version=99");
  std::unique_ptr<TuningCache> cache = Open();
  EXPECT_FALSE(cache->stores());
  cache->Store(record, {slow_, fast_});
  EXPECT_FALSE(cache->Find(record.key_text).has_value());
  EXPECT_THAT(warnings_, ElementsAre(absl::StrCat(
                             "tuning cache ", file_.string(),
                             " was written by a newer version (schema 99, this one "
                             "knows ",
                             kCacheSchemaVersion,
                             "); upgrade, or give another file: what is tuned is not kept")));
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
  for (const auto& [sql, words] :
       {std::pair("CREATE VIEW v AS SELECT * FROM env", "views or triggers"),
        {"CREATE TABLE more(x)", "the table more"},
        {"CREATE INDEX mine ON env(length(text))", "the index mine"}}) {
    fs::remove_all(dir_);
    warnings_.clear();
    Open();
    Tamper(sql);
    EXPECT_FALSE(Open()->stores()) << sql;
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr(words)));
  }
}

TEST_F(TuningCacheTest, ALinkIsNotFollowed) {
  Open();
  const fs::path other = file_.parent_path() / "other.db";
  fs::rename(file_, other);
  fs::create_symlink(other, file_);
  EXPECT_FALSE(Open()->stores());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("is no regular file")));
}

TEST_F(TuningCacheTest, AnotherUsersFileIsNotUsed) {
  Open();
  constexpr uid_t kOtherUser = 65534;
  if (chown(file_.c_str(), kOtherUser, kOtherUser) != 0)
    GTEST_SKIP() << "only root can give a file to another user";
  EXPECT_FALSE(Open()->stores());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("belongs to another user")));
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

}  // namespace
}  // namespace coconet
