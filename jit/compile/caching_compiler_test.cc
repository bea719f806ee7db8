#include "jit/compile/caching_compiler.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "coconet/base/bundle.h"
#include "coconet/base/fingerprint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The "binary" is the text itself; fails for a text that contains "REFUSED".
class FakeTranslator : public Translator {
 public:
  FakeTranslator(std::atomic<int>& runs, std::string identity, absl::Duration time)
      : runs_(runs), identity_(std::move(identity)), time_(time) {}
  const std::string& identity() const override { return identity_; }
  Dialect dialect() const override { return Dialect::kHost; }
  absl::string_view extension() const override { return "so"; }
  absl::StatusOr<std::string> Translate(const std::string& unit) override {
    ++runs_;
    CountCompilerRun();
    absl::SleepFor(time_);
    if (absl::StrContains(unit, "REFUSED"))
      return absl::InvalidArgumentError("want no error, have error");
    return unit;
  }

 private:
  std::atomic<int>& runs_;
  const std::string identity_;
  const absl::Duration time_;
};

class CachingCompilerTest : public ::testing::Test {
 protected:
  CachingCompilerTest()
      : dir_(fs::path(::testing::TempDir()) / absl::StrCat("compiler-", getpid())) {}
  ~CachingCompilerTest() override { fs::remove_all(dir_); }

  std::unique_ptr<Compiler> Make(const std::string& identity = "fake 1",
                                 absl::Duration time = absl::ZeroDuration(),
                                 size_t part_kernels = 0) {
    absl::StatusOr<std::unique_ptr<BinaryCache>> cache = BinaryCache::Open(dir_);
    EXPECT_TRUE(cache.ok()) << cache.status();
    return MakeCachingCompiler(std::make_unique<FakeTranslator>(runs_, identity, time),
                               *std::move(cache), part_kernels);
  }

  const fs::path dir_;
  std::atomic<int> runs_{0};
};

TEST_F(CachingCompilerTest, CompilesOnceAndThenFindsIt) {
  const int64_t before = CompilerRuns();
  const absl::StatusOr<Binary> first = Make()->Compile("int a;\n"),
                               second = Make()->Compile("int a;\n");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(first->from_cache);
  EXPECT_TRUE(second->from_cache);
  EXPECT_EQ(first->path, second->path);
  EXPECT_THAT(first->path, EndsWith(".so"));
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(CompilerRuns(), before + 1);
}

/// A source of kernels of these names.
KernelSource SourceOf(const std::vector<std::string>& kernels) {
  KernelSource source;
  for (const std::string& name : kernels) {
    source.Add(absl::StrCat("k_", name), absl::StrCat("namespace k_", name, "_n {\nint ", name,
                                                      ";\n}  // namespace k_", name, "_n\n"));
  }
  return source;
}

TEST_F(CachingCompilerTest, CompilesKernelsInPartsAndEachOnce) {
  const std::unique_ptr<Compiler> compiler =
      Make("fake 1", absl::ZeroDuration(), /*part_kernels=*/1);
  const absl::StatusOr<Binary> first = compiler->Compile(SourceOf({"a", "b", "c"}));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(runs_, 3);
  EXPECT_FALSE(first->from_cache);
  EXPECT_TRUE(compiler->Compile(SourceOf({"a", "b", "c"}))->from_cache);
  const absl::StatusOr<Binary> second = compiler->Compile(SourceOf({"c", "d"}));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(runs_, 4);
  EXPECT_NE(first->path, second->path);
  EXPECT_TRUE(compiler->Compile(SourceOf({"a"}))->from_cache);
  EXPECT_THAT(compiler->Compile(SourceOf({"a"}))->path, EndsWith(".so"));  // no bundle

  const std::string content = BinaryCache::ReadAt(second->path).value();
  const auto parts = UnpackBundle(content);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].first, "k_c");
  EXPECT_THAT((*parts)[0].second, HasSubstr("int c;"));
  EXPECT_EQ((*parts)[1].first, "k_d");
  EXPECT_THAT((*parts)[1].second, HasSubstr("int d;"));

  fs::resize_file(second->path, fs::file_size(second->path) / 2);
  const absl::StatusOr<Binary> again = compiler->Compile(SourceOf({"c", "d"}));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(BinaryCache::ReadAt(again->path), content);
  EXPECT_EQ(runs_, 4);

  EXPECT_EQ(compiler->Compile(SourceOf({"a", "REFUSED", "e"})).status(),
            absl::InvalidArgumentError("want no error, have error"));
}

TEST_F(CachingCompilerTest, CompilesAgainWhereAPartIsGone) {
  const std::unique_ptr<Compiler> compiler =
      Make("fake 1", absl::ZeroDuration(), /*part_kernels=*/1);
  ASSERT_TRUE(compiler->Compile(SourceOf({"a", "b"})).ok());
  fs::remove(compiler->Compile(SourceOf({"b"}))->path);
  const absl::StatusOr<Binary> binary = compiler->Compile(SourceOf({"b", "c"}));
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_THAT(BinaryCache::ReadAt(binary->path).value(),
              testing::AllOf(HasSubstr("int b;"), HasSubstr("int c;")));
}

TEST_F(CachingCompilerTest, APartHasSeveralKernels) {
  const std::unique_ptr<Compiler> compiler =
      Make("fake 1", absl::ZeroDuration(), /*part_kernels=*/2);
  ASSERT_TRUE(compiler->Compile(SourceOf({"a", "b"})).ok());
  EXPECT_EQ(runs_, 1);
  ASSERT_TRUE(compiler->Compile(SourceOf({"b", "a"})).ok());
  EXPECT_EQ(runs_, 1) << "kernels of other sources are not compiled again";
  ASSERT_TRUE(compiler->Compile(SourceOf({"c", "d", "e"})).ok());
  EXPECT_EQ(runs_, 3);
  const absl::StatusOr<Binary> binary = compiler->Compile(SourceOf({"e", "f", "d", "g", "h"}));
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_EQ(runs_, 5);
  const std::string content = BinaryCache::ReadAt(binary->path).value();
  const auto parts = UnpackBundle(content);
  ASSERT_TRUE(parts.ok()) << parts.status();
  std::vector<std::string> names;
  for (const auto& [name, part] : *parts) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"k_e", "k_f,k_g", "k_c,k_d", "k_h"}));

  EXPECT_FALSE(compiler->Compile(SourceOf({"c", "x", "REFUSED"})).ok());
  EXPECT_TRUE(compiler->Compile(SourceOf({"c", "x", "y"})).ok());
}

TEST_F(CachingCompilerTest, PartsAreOfOneSizeAndAsManyAsCoresCanCompile) {
  const std::unique_ptr<Compiler> of_three =
      Make("fake 1", absl::ZeroDuration(), /*part_kernels=*/3);
  ASSERT_TRUE(of_three->Compile(SourceOf({"a", "b", "c", "d"})).ok());
  EXPECT_EQ(runs_, 2);
  EXPECT_TRUE(Make("fake 1", absl::ZeroDuration())->Compile(SourceOf({"c", "d"}))->from_cache);

  runs_ = 0;
  const std::unique_ptr<Compiler> of_eight =
      Make("fake 1", absl::ZeroDuration(), /*part_kernels=*/8);
  ASSERT_TRUE(of_eight->Compile(SourceOf({"e", "f", "g", "h", "i", "j"})).ok());
  EXPECT_EQ(runs_, std::clamp<int>(std::thread::hardware_concurrency(), 1, 3));
}

TEST_F(CachingCompilerTest, ThreadsThatCompileInPartsShareKernels) {
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back(absl::StrCat("n", i));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      std::vector<std::string> mine = names;
      mine.push_back(absl::StrCat("of", i));
      const absl::StatusOr<Binary> binary =
          Make("fake 1", absl::Milliseconds(1), /*part_kernels=*/1)->Compile(SourceOf(mine));
      EXPECT_TRUE(binary.ok()) << binary.status();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runs_, 44);
}

TEST_F(CachingCompilerTest, ExpandsTheDeviceHeaders) {
  const absl::StatusOr<Binary> binary = Make()->Compile("#include \"coconet/kernel.h\"\n");
  ASSERT_TRUE(binary.ok()) << binary.status();
  std::ifstream file(binary->path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(text, HasSubstr("#line 1 \"prelude.h\""));
  EXPECT_EQ(Make()->Compile("#include \"stdio.h\"\n").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(CachingCompilerTest, TheKeyHoldsSourceAndIdentity) {
  const auto path = [&](const std::string& identity, const std::string& source) {
    const absl::StatusOr<Binary> binary = Make(identity)->Compile(source);
    EXPECT_TRUE(binary.ok() && !binary->from_cache);
    return binary.ok() ? binary->path : "";
  };
  const std::string a = path("fake 1", "int a;"), b = path("fake 1", "int b;"),
                    c = path("fake 2", "int a;");
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
}

TEST_F(CachingCompilerTest, RecompilesADamagedBinary) {
  const absl::StatusOr<Binary> binary = Make()->Compile("int a;");
  ASSERT_TRUE(binary.ok()) << binary.status();
  fs::resize_file(binary->path, fs::file_size(binary->path) / 2);
  const absl::StatusOr<Binary> again = Make()->Compile("int a;");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->from_cache);
  EXPECT_EQ(again->path, binary->path);
  EXPECT_TRUE(Make()->Compile("int a;")->from_cache);
}

TEST_F(CachingCompilerTest, ThreadsThatAskForTheSameBinaryShareOneCompile) {
  std::vector<std::unique_ptr<Compiler>> compilers;
  for (int i = 0; i < 6; ++i) compilers.push_back(Make("fake 1", absl::Milliseconds(100)));
  std::vector<absl::StatusOr<Binary>> binaries(compilers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < compilers.size(); ++i) {
    threads.emplace_back([&, i] { binaries[i] = compilers[i]->Compile("int shared;"); });
  }
  for (std::thread& thread : threads) thread.join();
  int compiled = 0;
  for (const absl::StatusOr<Binary>& binary : binaries) {
    ASSERT_TRUE(binary.ok()) << binary.status();
    compiled += binary->from_cache ? 0 : 1;
    EXPECT_EQ(binary->path, binaries[0]->path);
  }
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(runs_, 1);
}

TEST_F(CachingCompilerTest, ThreadsThatAskForDifferentBinariesCompileAtTheSameTime) {
  const auto compiler = Make("fake 1", absl::Milliseconds(200));
  const absl::Time begin = absl::Now();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back(
        [&, i] { EXPECT_TRUE(compiler->Compile(absl::StrCat("int x", i, ";")).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runs_, 8);
  EXPECT_LT(absl::Now() - begin, absl::Milliseconds(8 * 200));
}

TEST_F(CachingCompilerTest, AFailureIsGivenToThoseWhoWaitAndIsNotKept) {
  const auto compiler = Make("fake 1", absl::Milliseconds(100));
  std::vector<absl::Status> statuses(3);
  std::vector<std::thread> threads;
  for (absl::Status& status : statuses) {
    threads.emplace_back([&] { status = compiler->Compile("REFUSED").status(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status, absl::InvalidArgumentError("want no error, have error"));
  }
  const int before = runs_;
  EXPECT_FALSE(compiler->Compile("REFUSED").ok());
  EXPECT_EQ(runs_, before + 1);
}

TEST_F(CachingCompilerTest, SaysOnceThatTheDirectoryCannotBeWritten) {
  fs::create_directory(dir_);
  std::ofstream((dir_ / "objects").string()) << "in the way";
  const auto compiler = Make();
  const absl::StatusOr<Binary> first = compiler->Compile("int a;"),
                               second = compiler->Compile("int b;");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(first->note, StartsWith("cache directory " + dir_.string()));
  EXPECT_EQ(second->note, "");
  const absl::StatusOr<Binary> again = compiler->Compile("int a;");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->from_cache);
  EXPECT_TRUE(fs::exists(again->path));
}

/// Each of these runs in a process of its own, because the environment is read once per process.
class CachingCompilerDeathTest : public CachingCompilerTest {
 protected:
  CachingCompilerDeathTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }

  /// Compiles with a variable set, prints the message and exits with the status code.
  [[noreturn]] void CompileAndExit(const char* variable, const char* value,
                                   const std::string& source) {
    setenv(variable, value, 1);
    const absl::Status status = Make()->Compile(source).status();
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    std::exit(static_cast<int>(status.code()));
  }
};

TEST_F(CachingCompilerDeathTest, AMissIsAnErrorWhenEverythingMustBeCached) {
  EXPECT_EXIT(CompileAndExit("COCONET_ASSERT_CACHED", "1", "int a;"),
              ExitedWithCode(static_cast<int>(absl::StatusCode::kFailedPrecondition)),
              "COCONET_ASSERT_CACHED");
}

TEST_F(CachingCompilerDeathTest, TellsOfEachCompileWhenDebugging) {
  EXPECT_EXIT(CompileAndExit("COCONET_DEBUG", "1", "int a;"), ExitedWithCode(0),
              "coconet: compiled [0-9a-f]+\\.so in [0-9]+ ms, [0-9]+ bytes \\(fake 1\\)");
}

TEST_F(CachingCompilerDeathTest, DumpsTheSourceAsItIsCompiled) {
  const std::string unit = "#line 1 \"kernel.cc\"\nint a;\n";
  const std::string key = Fingerprint("fake 1\nint a;\n").substr(0, 12);
  EXPECT_EXIT(
      {
        setenv("COCONET_DUMP", "source", 1);
        setenv("COCONET_DUMP_DIR", (dir_ / "dumps").c_str(), 1);
        const bool ok = Make()->Compile("int a;\n").ok();
        std::ifstream file((dir_ / "dumps" / (key + ".cc")).string());
        std::exit(ok && std::string(std::istreambuf_iterator<char>(file), {}) == unit ? 0 : 1);
      },
      ExitedWithCode(0), "");
}

}  // namespace
}  // namespace coconet
