#include "autotune/runner/binaries.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "autotune/testing/separate_folders.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"
#include "runtime/world.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Takes a while; refuses what starts with "bad". Makes no files.
class FakeCompiler final : public Compiler {
 public:
  explicit FakeCompiler(int ms, std::string identity = "fake")
      : ms_(ms), identity_(std::move(identity)) {}
  const std::string& identity() const override { return identity_; }
  absl::StatusOr<Binary> Compile(const KernelSource& source) override {
    ++runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(ms_));
    if (source.text().rfind("bad", 0) == 0)
      return absl::InvalidArgumentError(absl::StrCat("no such thing: ", source.text()));
    return Binary{absl::StrCat("/bin/", source.text()), false, "a note"};
  }
  std::atomic<int> runs = 0;

 private:
  const int ms_;
  const std::string identity_;
};

Binaries::Options With(Compiler& compiler, std::string target = "one") {
  return {.target = std::move(target),
          .cache_dir = "",
          .compiler = [&] { return std::shared_ptr<Compiler>(std::shared_ptr<void>(), &compiler); },
          .warn = nullptr};
}

std::vector<std::string> Results(const std::vector<absl::StatusOr<std::string>>& binaries) {
  std::vector<std::string> out;
  for (const absl::StatusOr<std::string>& b : binaries)
    out.push_back(b.ok() ? *b : std::string(b.status().message()));
  return out;
}

TEST(BinariesCompile, GivesAllRanksTheSame) {
  FakeCompiler compiler(1);
  int progress = 0;
  std::set<std::string> notes;
  const absl::Status status = RunWorld({.ranks = 3, .pin = false}, [&](Rank& rank) -> absl::Status {
    const bool first = rank.rank() == 0;
    Binaries::Options options = With(compiler);
    options.warn = [&](absl::string_view note) { notes.emplace(note); };
    ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> all, Binaries::Open(rank, options));
    EXPECT_THAT(all->compilers(), ElementsAre(std::pair(0, "fake")));
    CompileWatch watch;
    watch.progress = [&](int done, int of) {
      EXPECT_GT(done, progress);
      EXPECT_EQ(of, 4);
      progress = done;
    };
    const std::vector<KernelSource> sources = {"a", "bad b", "c", "d"};
    ASSIGN_OR_RETURN(const auto binaries,
                     all->Compile(first ? sources : std::vector<KernelSource>(), watch));
    EXPECT_THAT(Results(binaries),
                ElementsAre("/bin/a", "no such thing: bad b", "/bin/c", "/bin/d"));
    EXPECT_EQ(binaries[1].status().code(), absl::StatusCode::kInvalidArgument);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(compiler.runs, 4);
  EXPECT_EQ(progress, 4);
  EXPECT_THAT(notes, ElementsAre("a note"));
}

TEST(BinariesOpen, RefusesTheFolderOfARankThatDoesNotCompileBeforeItCompiles) {
  const fs::path folder = fs::path(::testing::TempDir()) / "others_can_write";
  fs::create_directories(folder);
  fs::permissions(folder, fs::perms::all);
  FakeCompiler compiler(1);
  std::atomic<int> refused = 0;
  const absl::Status status = RunWorld({.ranks = 3, .pin = false}, [&](Rank& rank) -> absl::Status {
    Binaries::Options options = With(compiler);
    if (rank.rank() == 1) options.cache_dir = folder.string();
    const absl::Status opened = Binaries::Open(rank, options).status();
    EXPECT_EQ(opened.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(opened.message()),
                AllOf(HasSubstr("rank 1"), HasSubstr(folder.string())));
    refused += opened.ok() ? 0 : 1;
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(compiler.runs, 0);
}

TEST(BinariesOpen, SaysOfTheFolderOfARankThatItIsNoneBeforeItCompiles) {
  const fs::path folder = fs::path(::testing::TempDir()) / "of_rank_1";
  fs::create_directories(folder);
  const std::string file = folder / "a_file";
  std::ofstream(file) << "no folder";
  for (const std::string& bad : {file, file + "/below", std::string("/proc/none")}) {
    FakeCompiler compiler(1);
    std::vector<std::string> notes;
    const absl::Status status =
        RunWorld({.ranks = 4, .pin = false}, [&](Rank& rank) -> absl::Status {
          Binaries::Options options = With(compiler);
          if (rank.rank() == 1 || rank.rank() == 2) options.cache_dir = bad;
          options.warn = [&](absl::string_view note) { notes.emplace_back(note); };
          ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> all, Binaries::Open(rank, options));
          if (rank.rank() == 0) {
            EXPECT_THAT(notes, ElementsAre(AllOf(HasSubstr("rank 1"), HasSubstr(bad + ":"),
                                                 HasSubstr("COCONET_CACHE_DIR"))));
            EXPECT_EQ(compiler.runs, 0);
          }
          RETURN_IF_ERROR(rank.exchange().Barrier());
          return all->Compile({"a"}, {}).status();
        });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(compiler.runs, 1);
  }
}

TEST(BinariesCompile, AheadIsDoneInTheBackgroundByOneRank) {
  FakeCompiler compiler(20);
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> all, Binaries::Open(rank, With(compiler)));
    all->CompileAhead({"a", "b", "bad c"});
    for (int i = 0; i < 500 && compiler.runs < 3; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(compiler.runs, 3);
    RETURN_IF_ERROR(rank.exchange().Barrier());
    all->CompileAhead({});
    // A compiler of files finds those that are there; this one runs again.
    ASSIGN_OR_RETURN(const auto binaries, all->Compile({"a"}, {}));
    EXPECT_THAT(Results(binaries), ElementsAre("/bin/a"));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(compiler.runs, 4);
}

TEST(BinariesCompile, AheadEndsWithoutWaitingForWhatWasNotBegun) {
  FakeCompiler compiler(100);
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = RunWorld({.ranks = 1, .pin = false}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> all, Binaries::Open(rank, With(compiler)));
    all->CompileAhead(std::vector<KernelSource>(10000, "a"));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(BinariesCompile, WaitersHearOfALongCompileOnAnyRank) {
  FakeCompiler quick(1), slow(1500);
  for (int slow_rank : {0, 1}) {
    // One second is all that a rank waits for another here.
    const absl::Status status =
        RunWorld({.ranks = 3, .timeout_s = 1, .pin = false}, [&](Rank& rank) -> absl::Status {
          const bool is_slow = rank.rank() == slow_rank;
          ASSIGN_OR_RETURN(
              const std::unique_ptr<Binaries> all,
              Binaries::Open(rank, With(is_slow ? slow : quick, is_slow ? "one" : "another")));
          return all->Compile({"source"}, {}).status();
        });
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(BinariesCompile, StopsOnAllRanksWhenAsked) {
  FakeCompiler compilers[] = {FakeCompiler(20), FakeCompiler(100)};
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> all,
                     Binaries::Open(rank, With(compilers[rank.rank()], absl::StrCat(rank.rank()))));
    CompileWatch watch;
    watch.stop = [&] { return compilers[1].runs >= 1; };
    const std::vector<KernelSource> sources(200, "x");
    ASSIGN_OR_RETURN(const auto binaries, all->Compile(sources, watch));
    EXPECT_TRUE(binaries.front().ok());
    EXPECT_EQ(binaries.back().status().code(), absl::StatusCode::kCancelled);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LT(compilers[0].runs, 199);
  EXPECT_LT(compilers[1].runs, 100);
}

TEST(BinariesCompile, NeedsNoSources) {
  FakeCompiler compiler(1);
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> all, Binaries::Open(rank, With(compiler)));
    ASSIGN_OR_RETURN(const auto binaries, all->Compile({}, {}));
    EXPECT_THAT(binaries, IsEmpty());
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(BinariesCompile, TellsOfKernelsThatDiffer) {
  FakeCompiler compiler(1);
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    const std::string own = absl::StrCat(rank.rank());
    ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> all,
                     Binaries::Open(rank, With(compiler, own)));
    EXPECT_EQ(all->Compile({own}, {}).status().message(),
              "compile: ranks 0 and 1 have different kernels of the same variants");
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(BinariesOpen, FailsOnAllRanksWithoutACompilerOfOne) {
  const absl::Status status = RunWorld({.ranks = 3, .pin = false}, [&](Rank& rank) -> absl::Status {
    FakeCompiler compiler(1);
    Binaries::Options options = With(compiler, rank.rank() == 2 ? "sm_90" : "sm_80");
    if (rank.rank() == 2) options.compiler = [] { return absl::UnavailableError("no NVRTC"); };
    const absl::Status opened = Binaries::Open(rank, options).status();
    EXPECT_EQ(opened.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(opened.message()),
                AllOf(HasSubstr("rank 2: no NVRTC"), HasSubstr("it has sm_90, rank 0 has sm_80")));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

/// What MakeHostCompiler makes where no compiler is installed.
class MissingCompiler final : public Compiler {
 public:
  const std::string& identity() const override { return identity_; }
  absl::StatusOr<Binary> Compile(const KernelSource&) override {
    return absl::UnavailableError("host compiler: have none; install g++");
  }

 private:
  const std::string identity_ = "none";
};

TEST(BinariesCompile, IsAnErrorOfAllWhereACompilerIsMissing) {
  const absl::Status status = RunWorld({.ranks = 3, .pin = false}, [&](Rank& rank) -> absl::Status {
    FakeCompiler compiler(1);
    MissingCompiler missing;
    const Binaries::Options options =
        rank.rank() == 0 ? With(compiler, "a new processor") : With(missing, "an old one");
    ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> all, Binaries::Open(rank, options));
    ASSIGN_OR_RETURN(const auto paths, all->Compile({"source"}, {}));
    EXPECT_EQ(paths[0].status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(paths[0].status().message()),
                AllOf(HasSubstr("rank 1: host compiler: have none; install g++. "),
                      HasSubstr("it has an old one, rank 0 has a new processor"),
                      HasSubstr("COCONET_HOST_ARCH")));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

/// Ranks on machines of their own: threads that do not see each other's files.
class BinariesOnMachines : public ::testing::Test {
 protected:
  static constexpr char kSource[] =
      "extern \"C\" __attribute__((visibility(\"default\"))) int Answer() { return 42; }";

  BinariesOnMachines()
      : root_(fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(root_);
  }
  ~BinariesOnMachines() override { fs::remove_all(root_); }

  fs::path Machine(int machine) const { return root_ / absl::StrCat(machine); }

  /// The binaries on a machine.
  std::vector<fs::path> Files(int machine) const {
    std::vector<fs::path> files;
    const fs::path objects = Machine(machine) / "cache/objects";
    if (!fs::exists(objects)) return files;
    for (const auto& entry : fs::recursive_directory_iterator(objects))
      if (entry.path().extension() == ".so") files.push_back(entry.path());
    return files;
  }

  /// Ranks 0 and 1 are on one machine, 2 and 3 on another, ... Between compiling and loading,
  /// `between` runs on rank 0 while the others wait.
  absl::Status LoadOn(int ranks, const std::function<std::string(Rank&)>& target,
                      const std::function<void()>& between = nullptr) {
    return RunWorld({.ranks = ranks, .pin = false}, [&](Rank& rank) -> absl::Status {
      RETURN_IF_ERROR(LiveOn(Machine(rank.rank() / 2)));
      const std::string mine = target(rank);
      const CompilerOptions compiler{.cache_dir = kFolderOfThisMachine,
                                     .optimize = mine == "one" ? Optimize::kFast : Optimize::kFull};
      ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> binaries,
                       Binaries::Open(rank, {.target = mine,
                                             .cache_dir = compiler.cache_dir,
                                             .compiler = [&] { return MakeHostCompiler(compiler); },
                                             .warn = nullptr}));
      const KernelSource source = kSource;
      ASSIGN_OR_RETURN(const auto paths, binaries->Compile({&source, 1}, {}));
      ASSIGN_OR_RETURN(const std::string path, paths[0]);
      RETURN_IF_ERROR(rank.exchange().Barrier());
      if (rank.rank() == 0 && between) between();
      RETURN_IF_ERROR(rank.exchange().Barrier());
      ASSIGN_OR_RETURN(const Binaries::Loaded loaded, binaries->Load(path, source));
      RETURN_IF_ERROR(loaded.status);
      ASSIGN_OR_RETURN(void* const answer, loaded.module->Symbol("Answer"));
      EXPECT_EQ(reinterpret_cast<int (*)()>(answer)(), 42);
      return absl::OkStatus();
    });
  }
  static std::string OneTarget(Rank&) { return "one"; }

  const fs::path root_;
};

TEST_F(BinariesOnMachines, AreCompiledOnceAndCopied) {
  const int64_t before = CompilerRuns();
  absl::Status status = LoadOn(4, OneTarget);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(CompilerRuns(), before + 1);
  ASSERT_THAT(Files(0), SizeIs(1));
  ASSERT_THAT(Files(1), SizeIs(1));
  EXPECT_EQ(Files(0)[0].filename(), Files(1)[0].filename());
  const fs::file_time_type kept = fs::last_write_time(Files(1)[0]);
  status = LoadOn(4, OneTarget);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(CompilerRuns(), before + 1);
  EXPECT_EQ(fs::last_write_time(Files(1)[0]), kept);
}

TEST_F(BinariesOnMachines, ForOtherProcessorsAreCompiledThere) {
  const auto target = [](Rank& rank) { return rank.rank() < 2 ? "one" : "another"; };
  const int64_t before = CompilerRuns();
  const absl::Status status = LoadOn(6, target);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(CompilerRuns(), before + 2) << "once per processor, not once per machine";
  for (int machine = 0; machine < 3; ++machine) ASSERT_THAT(Files(machine), SizeIs(1)) << machine;
  EXPECT_NE(Files(0)[0].filename(), Files(1)[0].filename());
  EXPECT_EQ(Files(1)[0].filename(), Files(2)[0].filename());
}

TEST_F(BinariesOnMachines, AreSentOrCompiledAgainWhereTheyAreDamaged) {
  absl::Status status = LoadOn(4, OneTarget);
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<fs::path> files = {Files(0)[0], Files(1)[0]};
  const auto size = fs::file_size(files[0]);
  const std::function<void(const fs::path&)> damages[] = {
      [](const fs::path& file) { fs::remove(file); },
      [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) / 2); },
      [](const fs::path& file) {
        std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(64) << "damage";
      },
  };
  for (const auto& damage : damages) {
    for (const std::vector<int>& machines : {std::vector<int>{0}, {1}, {0, 1}}) {
      status = LoadOn(4, OneTarget, [&] {
        for (int machine : machines) damage(files[machine]);
      });
      EXPECT_TRUE(status.ok()) << status;
      for (const fs::path& file : files) {
        EXPECT_TRUE(BinaryCache::ReadAt(file).has_value()) << file;
        EXPECT_EQ(fs::file_size(file), size);
      }
    }
  }
}

TEST_F(BinariesOnMachines, ThatCannotBeKeptAreAnErrorOfAllAndOfNoKernel) {
  fs::create_directories(Machine(1) / "cache");
  const absl::Status status = LoadOn(4, OneTarget, [&] {
    fs::permissions(Machine(1) / "cache", fs::perms::all);  // others can write there
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("rank 2: "), HasSubstr("others can write to it")));
}

TEST(BinariesLoad, HasNothingToLoadForPlansOfLibraryCalls) {
  FakeCompiler compiler(1);
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> all, Binaries::Open(rank, With(compiler)));
    ASSIGN_OR_RETURN(const Binaries::Loaded loaded, all->Load("", ""));
    RETURN_IF_ERROR(loaded.status);
    EXPECT_EQ(loaded.module->Symbol("k").status().code(), absl::StatusCode::kNotFound);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(BinariesLoad, SaysWhoCouldNotLoadACompleteFile) {
  const fs::path folder = fs::path(::testing::TempDir()) / "no_object";
  const auto cache = BinaryCache::Open(folder);
  ASSERT_TRUE(cache.ok());
  const auto path = (*cache)->Store(std::string(64, 'a') + ".so", "not a shared object",
                                    BinaryCache::Existing::kKeep);
  ASSERT_TRUE(path.ok());
  FakeCompiler compiler(1);
  const absl::Status status = RunWorld({.ranks = 2, .pin = false}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> all, Binaries::Open(rank, With(compiler)));
    ASSIGN_OR_RETURN(const Binaries::Loaded loaded, all->Load(*path, "source"));
    EXPECT_THAT(std::string(loaded.status.message()), HasSubstr("rank 0: "));
    EXPECT_EQ(loaded.module, nullptr);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(compiler.runs, 0);
}

}  // namespace
}  // namespace coconet
