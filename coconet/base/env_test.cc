#include "coconet/base/env.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "gtest/gtest.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

/// Unsets the library's variables during a test, and restores them afterwards.
class EnvTest : public testing::Test {
 protected:
  EnvTest() {
    for (const char* name :
         {"COCONET_DEBUG", "COCONET_DUMP", "COCONET_DUMP_DIR", "COCONET_CACHE_DIR", "COCONET_SEED",
          "COCONET_JOB_CACHE", "COCONET_SITE_CACHE", "COCONET_CACHE_MODE", "COCONET_CACHE_LIMIT",
          "COCONET_VERIFY", "COCONET_ASSERT_CACHED", "COCONET_TIMEOUT", "COCONET_CXX",
          "COCONET_GREEN_CONTEXTS", "COCONET_HOST_ARCH", "COCONET_TRACE", "XDG_CACHE_HOME", "HOME",
          "PATH"}) {
      if (const char* value = std::getenv(name); value != nullptr) saved_[name] = value;
      unsetenv(name);
    }
  }
  ~EnvTest() override {
    for (const auto& [name, value] : saved_) setenv(name.c_str(), value.c_str(), 1);
  }
  static Env With(const char* name, const char* value) {
    setenv(name, value, 1);
    Env env = ReadEnv();
    unsetenv(name);
    return env;
  }
  static fs::path Folder(const std::string& name) {
    const fs::path folder = fs::path(testing::TempDir()) / name;
    fs::remove_all(folder);
    return folder;
  }

 private:
  std::map<std::string, std::string> saved_;
};

std::string Contents(const fs::path& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST_F(EnvTest, ReadsHowTheTuningCacheIsUsed) {
  EXPECT_EQ(ReadEnv().cache_mode, CacheMode::kReadWrite);
  EXPECT_EQ(ReadEnv().cache_limit, 256 << 20);
  EXPECT_EQ(With("COCONET_JOB_CACHE", "/a/b.db").job_cache, "/a/b.db");
  EXPECT_EQ(With("COCONET_SITE_CACHE", "/c.db").site_cache, "/c.db");
  EXPECT_EQ(With("COCONET_CACHE_MODE", "readonly").cache_mode, CacheMode::kReadOnly);
  EXPECT_EQ(With("COCONET_CACHE_MODE", "off").cache_mode, CacheMode::kOff);
  EXPECT_EQ(With("COCONET_CACHE_MODE", "Off").cache_mode, CacheMode::kUnknown);
  for (const auto& [text, bytes] : {std::pair("64Mi", int64_t{64} << 20),
                                    {"1000", 1000},
                                    {"3Ki", 3 << 10},
                                    {"0", 0},
                                    {"2Gi", int64_t{2} << 30},
                                    {"1e6", 256 << 20},
                                    {"-1", 256 << 20},
                                    {"Mi", 256 << 20},
                                    {"9999999999999Gi", 256 << 20}})
    EXPECT_EQ(With("COCONET_CACHE_LIMIT", text).cache_limit, bytes) << text;
}

TEST_F(EnvTest, DefaultsWhenNothingIsSet) {
  const Env env = ReadEnv();
  EXPECT_EQ(env.debug, 0);
  EXPECT_EQ(env.dump, "");
  EXPECT_EQ(env.cache_dir, "");
  EXPECT_EQ(env.seed, std::nullopt);
  EXPECT_EQ(env.trace, "");
  EXPECT_FALSE(env.verify);
  EXPECT_FALSE(env.assert_cached);
  EXPECT_EQ(env.timeout_s, 60);
  EXPECT_TRUE(env.green_contexts);
  EXPECT_TRUE(env.multicast);
  EXPECT_FALSE(env.nccl_shared_gpu);
  EXPECT_EQ(env.simt_seed, "");
  EXPECT_EQ(env.cxx, "");
  EXPECT_EQ(env.host_arch, "native");
}

TEST_F(EnvTest, TakesAnInstructionSetThatTheProcessorHas) {
  for (const char* arch : {"", "x86-64-v9", "native", "skylake"}) {
    EXPECT_EQ(With("COCONET_HOST_ARCH", arch).host_arch, "native") << arch;
  }
#if defined(__x86_64__)
  EXPECT_EQ(With("COCONET_HOST_ARCH", "x86-64").host_arch, "x86-64");
  EXPECT_EQ(With("COCONET_HOST_ARCH", "x86-64-v3").host_arch,
            __builtin_cpu_supports("x86-64-v3") ? "x86-64-v3" : "native");
#endif
}

TEST_F(EnvTest, ReadsEachVariable) {
  EXPECT_EQ(With("COCONET_DEBUG", "2").debug, 2);
  EXPECT_EQ(With("COCONET_DUMP_DIR", "/tmp/x").dump_dir, "/tmp/x");
  EXPECT_EQ(With("COCONET_SEED", "18446744073709551615").seed, UINT64_MAX);
  EXPECT_TRUE(With("COCONET_VERIFY", "1").verify);
  EXPECT_FALSE(With("COCONET_VERIFY", "0").verify);
  EXPECT_TRUE(With("COCONET_ASSERT_CACHED", "1").assert_cached);
  EXPECT_EQ(With("COCONET_TIMEOUT", "0.5").timeout_s, 0.5);
  EXPECT_FALSE(With("COCONET_GREEN_CONTEXTS", "0").green_contexts);
  EXPECT_FALSE(With("COCONET_MULTICAST", "0").multicast);
  EXPECT_TRUE(With("COCONET_NCCL_SHARED_GPU", "1").nccl_shared_gpu);
  EXPECT_EQ(With("COCONET_SIMT_SEED", "7").simt_seed, "7");
  EXPECT_EQ(With("COCONET_CXX", "clang++-16").cxx, "clang++-16");
}

TEST_F(EnvTest, NonsenseCountsAsUnset) {
  for (const char* nonsense : {"many", "-1", "4", "1e9", ""})
    EXPECT_EQ(With("COCONET_DEBUG", nonsense).debug, 0);
  for (const char* nonsense : {"x", "-1", "0", "inf", "nan", ""}) {
    EXPECT_EQ(With("COCONET_TIMEOUT", nonsense).timeout_s, 60) << nonsense;
  }
  EXPECT_EQ(With("COCONET_SEED", "-3").seed, std::nullopt);
  EXPECT_FALSE(With("COCONET_VERIFY", "perhaps").verify);
  EXPECT_TRUE(With("COCONET_GREEN_CONTEXTS", "perhaps").green_contexts);
}

TEST_F(EnvTest, CacheFolderFollowsItsVariablesInOrder) {
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(ReadEnv().cache_dir, "/home/me/.cache/coconet");
  EXPECT_EQ(With("XDG_CACHE_HOME", "relative").cache_dir, "/home/me/.cache/coconet");
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(ReadEnv().cache_dir, "/xdg/coconet");
  EXPECT_EQ(With("COCONET_CACHE_DIR", "mine").cache_dir, "mine");
}

TEST_F(EnvTest, CompilerIsTheFirstExecutableOnPath) {
  const fs::path bin = Folder("bin");
  fs::create_directories(bin);
  std::ofstream(bin / "c++") << "not executable";
  std::ofstream(bin / "g++") << "executable";
  fs::permissions(bin / "g++", fs::perms::owner_all);
  EXPECT_EQ(With("PATH", ("/nowhere:" + bin.string()).c_str()).cxx, (bin / "g++").string());
}

TEST_F(EnvTest, DumpsWhatIsListed) {
  const Env env = With("COCONET_DUMP", "plan, ptx");
  EXPECT_TRUE(env.Dumps("plan"));
  EXPECT_TRUE(env.Dumps("ptx"));
  EXPECT_FALSE(env.Dumps("pt"));
  EXPECT_FALSE(ReadEnv().Dumps(""));
}

TEST_F(EnvTest, DumpWritesAFileOfThatName) {
  Env env;
  env.dump = "plan";
  env.dump_dir = Folder("dump") / "deeper";
  MaybeDump(env, "plan", "adam/2 ranks.txt", "first");
  MaybeDump(env, "plan", "adam/2 ranks.txt", "second");
  MaybeDump(env, "source", "kernel.cc", "not asked for");
  EXPECT_EQ(Contents(fs::path(env.dump_dir) / "adam_2_ranks.txt"), "second");
  EXPECT_EQ(std::distance(fs::directory_iterator(env.dump_dir), fs::directory_iterator()), 1);
}

TEST_F(EnvTest, OfDumpsIntoImpossibleFoldersTheFirstIsSaid) {
  Env env;
  env.dump = "plan";
  env.dump_dir = "/proc/version/folder";
  testing::internal::CaptureStderr();
  MaybeDump(env, "source", "not asked for", "text");
  MaybeDump(env, "plan", "x y", "text");
  MaybeDump(env, "plan", "x y", "text");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "coconet: COCONET_DUMP_DIR: cannot write x_y in /proc/version/folder: Not a "
            "directory\n");
  env.dump_dir = Folder("occupied");
  fs::create_directories(fs::path(env.dump_dir) / "x");
  MaybeDump(env, "plan", "x", "text");
  EXPECT_EQ(std::distance(fs::directory_iterator(env.dump_dir), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace coconet
