#include "jit/compile/binary_cache.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "coconet/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using Existing = BinaryCache::Existing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Name(const std::string& what) { return Fingerprint(what) + ".so"; }

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

mode_t Mode(const fs::path& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

class BinaryCacheTest : public ::testing::Test {
 protected:
  BinaryCacheTest()
      : dir_(fs::path(::testing::TempDir()) / absl::StrCat("cache-", getpid(), "-", Fresh())) {}
  ~BinaryCacheTest() override { fs::remove_all(dir_); }

  static int Fresh() {
    static int count = 0;
    return ++count;
  }

  std::unique_ptr<BinaryCache> Open() const {
    absl::StatusOr<std::unique_ptr<BinaryCache>> cache = BinaryCache::Open(dir_);
    EXPECT_TRUE(cache.ok()) << cache.status();
    return cache.ok() ? *std::move(cache) : nullptr;
  }

  static std::string Store(BinaryCache& cache, const std::string& name, const std::string& content,
                           Existing existing = Existing::kKeep) {
    const absl::StatusOr<std::string> path = cache.Store(name, content, existing);
    EXPECT_TRUE(path.ok()) << path.status();
    return path.value_or("");
  }

  const fs::path dir_;
};

TEST_F(BinaryCacheTest, FindsWhatAnotherProcessStored) {
  const std::string path = Store(*Open(), Name("a"), "content");
  EXPECT_THAT(path, StartsWith(dir_.string() + "/objects/" + Name("a").substr(0, 2) + "/"));
  EXPECT_THAT(path, EndsWith("/" + Name("a")));
  const auto later = Open();
  EXPECT_EQ(later->Find(Name("a")), path);
  EXPECT_EQ(later->Read(Name("a")), "content");
  EXPECT_EQ(later->Find(Name("b")), std::nullopt);
  EXPECT_EQ(later->TakeNote(), "");
}

TEST_F(BinaryCacheTest, ReadsWhatAnotherCacheStored) {
  const fs::path path = Store(*Open(), Name("a"), "content");
  EXPECT_EQ(BinaryCache::ReadAt(path), "content");
  EXPECT_EQ(BinaryCache::ReadAt(path.parent_path() / Name("b")), std::nullopt);
  fs::copy_file(path, dir_ / path.filename());
  EXPECT_EQ(BinaryCache::ReadAt(dir_ / path.filename()), std::nullopt) << "no cache stores there";
  EXPECT_EQ(BinaryCache::ReadAt(""), std::nullopt);
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  EXPECT_EQ(BinaryCache::ReadAt(path), std::nullopt);
  fs::permissions(path, fs::perms::others_write, fs::perm_options::remove);
  EXPECT_EQ(BinaryCache::ReadAt(path), "content");
  fs::resize_file(path, fs::file_size(path) - 1);
  EXPECT_EQ(BinaryCache::ReadAt(path), std::nullopt);
}

TEST_F(BinaryCacheTest, IsForTheOwnerAloneAndLeavesNoTemporaryFile) {
  const std::string path = Store(*Open(), Name("a"), "content");
  EXPECT_EQ(Mode(path), 0600u);
  EXPECT_EQ(Mode(fs::path(path).parent_path()), 0700u);
  EXPECT_EQ(Mode(dir_ / "objects"), 0700u);
  EXPECT_EQ(Mode(dir_), 0700u);
  EXPECT_TRUE(fs::is_empty(dir_ / "tmp"));
}

TEST_F(BinaryCacheTest, KeepsBinaryContentOfAnySize) {
  const auto cache = Open();
  const std::string zeros(100'000, '\0');
  Store(*cache, Name("zeros"), zeros);
  EXPECT_EQ(cache->Read(Name("zeros")), zeros);
  Store(*cache, Name("empty"), "");
  EXPECT_EQ(cache->Read(Name("empty")), "");
}

TEST_F(BinaryCacheTest, ADamagedFileIsNotThereAndIsReplaced) {
  const auto cache = Open();
  const std::string path = Store(*cache, Name("a"), "some content"), whole = Slurp(path);
  std::string flipped = whole, longer = whole + "x";
  flipped[3] ^= 1;
  for (const std::string& damaged :
       {flipped, longer, whole.substr(0, 20), whole.substr(1), std::string()}) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
    EXPECT_EQ(cache->Find(Name("a")), std::nullopt) << damaged;
    EXPECT_EQ(Store(*cache, Name("a"), "some content"), path);
    EXPECT_EQ(cache->Read(Name("a")), "some content");
  }
}

TEST_F(BinaryCacheTest, KeepsOrReplacesAsAsked) {
  const auto cache = Open();
  const std::string path = Store(*cache, Name("a"), "first");
  struct stat before = {}, after = {};
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  Store(*cache, Name("a"), "second", Existing::kKeep);
  EXPECT_EQ(cache->Read(Name("a")), "first");
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  Store(*cache, Name("a"), "third", Existing::kReplace);
  EXPECT_EQ(cache->Read(Name("a")), "third");
}

TEST_F(BinaryCacheTest, IgnoresWhatOthersCanWriteAndSymbolicLinks) {
  const auto cache = Open();
  const std::string path = Store(*cache, Name("a"), "content");
  ASSERT_EQ(chmod(path.c_str(), 0622), 0);
  EXPECT_EQ(cache->Find(Name("a")), std::nullopt);
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_NE(cache->Find(Name("a")), std::nullopt);

  const fs::path elsewhere = dir_ / "elsewhere";
  fs::rename(path, elsewhere);
  fs::create_symlink(elsewhere, path);
  EXPECT_EQ(cache->Find(Name("a")), std::nullopt);

  const fs::path shard = fs::path(path).parent_path();
  fs::remove(path);
  fs::rename(elsewhere, path);
  fs::rename(shard, elsewhere);
  fs::create_directory_symlink(elsewhere, shard);
  EXPECT_EQ(cache->Find(Name("a")), std::nullopt);
}

TEST_F(BinaryCacheTest, RefusesADirectoryThatOthersCanWrite) {
  fs::create_directory(dir_);
  ASSERT_EQ(chmod(dir_.c_str(), 0777), 0);
  const absl::Status status = BinaryCache::Open(dir_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("chmod go-w " + dir_.string()));
}

TEST_F(BinaryCacheTest, RefusesADirectoryOfSomebodyElse) {
  fs::create_directory(dir_);
  if (chown(dir_.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "only root can give a directory away";
  const absl::Status status = BinaryCache::Open(dir_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()), HasSubstr("have 12345"));
}

/// Checks the cache's behaviour where nothing can be written below `dir`.
void ExpectFallsBack(BinaryCache& cache, const fs::path& dir) {
  const absl::StatusOr<std::string> path = cache.Store(Name("a"), "content", Existing::kKeep);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_THAT(*path, Not(StartsWith(dir.string() + "/")));
  EXPECT_THAT(Slurp(*path), StartsWith("content"));
  EXPECT_EQ(cache.Find(Name("a")), *path);
  EXPECT_EQ(Mode(fs::path(*path).parent_path()), 0700u);
  const std::string note = cache.TakeNote();
  EXPECT_THAT(note, StartsWith("cache directory " + dir.string()));
  EXPECT_THAT(note, HasSubstr("COCONET_CACHE_DIR"));
  EXPECT_EQ(cache.TakeNote(), "") << "said once";
}

TEST_F(BinaryCacheTest, FallsBackWhenTheDirectoryCannotBeMade) {
  std::ofstream(dir_.string()) << "a file, not a directory";
  const auto cache = Open();
  ASSERT_NE(cache, nullptr);
  ExpectFallsBack(*cache, dir_);
}

TEST_F(BinaryCacheTest, FallsBackWhenTheDirectoryCannotBeWritten) {
  // A file in place of a directory; unlike permissions, this also stops root.
  const auto cache = Open();
  std::ofstream((dir_ / "tmp").string()) << "in the way";
  ExpectFallsBack(*cache, dir_);
}

TEST_F(BinaryCacheTest, ReadsADirectoryThatItCannotWrite) {
  const std::string path = Store(*Open(), Name("old"), "old");
  fs::remove(dir_ / "tmp");
  std::ofstream((dir_ / "tmp").string()) << "in the way";
  const auto cache = Open();
  EXPECT_EQ(cache->Find(Name("old")), path);
  EXPECT_EQ(cache->TakeNote(), "");
  ExpectFallsBack(*cache, dir_);
}

TEST_F(BinaryCacheTest, WorksWithoutADirectory) {
  absl::StatusOr<std::unique_ptr<BinaryCache>> cache = BinaryCache::Open("");
  ASSERT_TRUE(cache.ok()) << cache.status();
  const std::string path = Store(**cache, Name("none"), "content");
  EXPECT_EQ((*cache)->Find(Name("none")), path);
  EXPECT_THAT((*cache)->TakeNote(), HasSubstr("none is set"));
}

TEST_F(BinaryCacheTest, TheTemporaryDirectoryGoesWithTheProcess) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    const std::string path = Store(*Open(), Name("kept"), "x");
    const std::string temporary = Store(**BinaryCache::Open(""), Name("lost"), "x");
    dprintf(ends[1], "%s", temporary.c_str());
    std::exit(fs::exists(temporary) && fs::exists(path) ? 0 : 1);
  }
  close(ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  char path[4096] = {};
  ASSERT_GT(read(ends[0], path, sizeof path - 1), 0);
  close(ends[0]);
  EXPECT_FALSE(fs::exists(path)) << path;
  EXPECT_TRUE(fs::exists(dir_ / "objects"));
}

TEST_F(BinaryCacheTest, RemovesWhatKilledProcessesLeftADayAgo) {
  Store(*Open(), Name("a"), "a");
  const std::string old = dir_ / "tmp" / "old", recent = dir_ / "tmp" / "recent";
  std::ofstream(old) << "x";
  std::ofstream(recent) << "x";
  const utimbuf two_days_ago = {time(nullptr) - 2 * 86400, time(nullptr) - 2 * 86400};
  ASSERT_EQ(utime(old.c_str(), &two_days_ago), 0);
  Store(*Open(), Name("b"), "b");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(recent));
}

TEST_F(BinaryCacheTest, ALockKeepsOthersWaitingUntilItGoesOrTheyLosePatience) {
  const auto cache = Open(), other = Open();
  auto held = std::make_unique<BinaryCache::Lock>(cache->Acquire(Name("a"), absl::ZeroDuration()));
  EXPECT_FALSE(fs::is_empty(dir_ / "tmp"));
  const absl::Time begin = absl::Now();
  other->Acquire(Name("a"), absl::Milliseconds(50));
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(50));

  const absl::Time second = absl::Now();
  std::thread waiter([&] { other->Acquire(Name("a"), absl::Seconds(60)); });
  held.reset();
  waiter.join();
  EXPECT_LT(absl::Now() - second, absl::Seconds(30));
  EXPECT_TRUE(fs::is_empty(dir_ / "tmp"));
}

TEST_F(BinaryCacheTest, ManyWritersOfOneNameLeaveOneWholeFile) {
  const std::string content(300'000, 'c');
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto cache = Open();
      for (int k = 0; k < 5; ++k) {
        Store(*cache, Name("a"), content, k % 2 == 0 ? Existing::kKeep : Existing::kReplace);
        EXPECT_EQ(cache->Read(Name("a")), content);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(fs::is_empty(dir_ / "tmp"));
}

}  // namespace
}  // namespace coconet
