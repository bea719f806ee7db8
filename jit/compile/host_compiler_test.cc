#include "jit/compile/host_compiler.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/process.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kAnswer[] =
    "extern \"C\" __attribute__((visibility(\"default\"))) int answer() { return 42; }\n";

/// A kernel like the generated ones: a loop over packs with a tail.
constexpr char kKernel[] = R"(#include "coconet/kernel.h"
struct Params { float* x; long long n; };
CC_KERNEL(square) {
  using namespace coconet;
  for (Index i = grid.BlockId(); i < p.n; i += grid.GridSize()) {
    p.x[i] = ScalarSqrt(p.x[i]) * p.x[i];
  }
}
)";

class HostCompilerTest : public ::testing::Test {
 protected:
  HostCompilerTest() : dir_(fs::path(::testing::TempDir()) / absl::StrCat("host-", getpid())) {
    fs::create_directory(dir_);
    options_.cache_dir = dir_ / "cache";
    options_.optimize = Optimize::kFast;
  }
  ~HostCompilerTest() override { fs::remove_all(dir_); }

  static std::string SystemCompiler() {
    for (const char* name : {"c++", "g++", "clang++"}) {
      if (std::string program = FindProgram(name); !program.empty()) return program;
    }
    return "";
  }

  std::unique_ptr<Compiler> Make(const std::string& cxx) const {
    absl::StatusOr<std::unique_ptr<Compiler>> compiler = MakeHostCompilerFor(cxx, options_);
    EXPECT_TRUE(compiler.ok()) << compiler.status();
    return compiler.ok() ? *std::move(compiler) : nullptr;
  }
  std::unique_ptr<Compiler> Make() const { return Make(SystemCompiler()); }

  /// A compiler that answers -### as the system's does, and otherwise runs `script`.
  std::string FakeCompiler(const std::string& script) const {
    const std::string path = dir_ / "fake-c++";
    std::ofstream(path) << "#!/bin/sh\ncase \"$*\" in *'-###'*) exec " << SystemCompiler()
                        << " \"$@\" ;; esac\n"
                        << script << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  const fs::path dir_;
  CompilerOptions options_;
};

int CallAnswer(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return ADD_FAILURE() << dlerror(), -1;
  auto* answer = reinterpret_cast<int (*)()>(dlsym(library, "answer"));
  const int result = answer == nullptr ? -1 : answer();
  dlclose(library);
  return result;
}

TEST_F(HostCompilerTest, CompilesWhatCanBeLoadedAndCalled) {
  const auto compiler = Make();
  const absl::StatusOr<Binary> binary = compiler->Compile(kAnswer);
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_FALSE(binary->from_cache);
  EXPECT_EQ(binary->note, "");
  EXPECT_EQ(CallAnswer(binary->path), 42);
}

TEST_F(HostCompilerTest, CompilesAKernelOverTheEmbeddedHeaders) {
  for (Optimize optimize : {Optimize::kFast, Optimize::kFull}) {
    options_.optimize = optimize;
    const absl::StatusOr<Binary> binary = Make()->Compile(kKernel);
    ASSERT_TRUE(binary.ok()) << binary.status();
    void* library = dlopen(binary->path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    auto* square = reinterpret_cast<void (*)(const void*, int, int)>(dlsym(library, "square"));
    ASSERT_NE(square, nullptr);
    float x[] = {1, 4, 9, 16, 25};
    const struct {
      float* x;
      long long n;
    } params = {x, 5};
    square(&params, 0, 1);
    EXPECT_THAT(x, ::testing::ElementsAre(1, 8, 27, 64, 125));
    dlclose(library);
  }
}

TEST_F(HostCompilerTest, AWarmCacheRunsNothing) {
  ASSERT_TRUE(Make()->Compile(kAnswer).ok());
  const int64_t before = CompilerRuns();
  const absl::StatusOr<Binary> binary = Make()->Compile(kAnswer);
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_TRUE(binary->from_cache);
  EXPECT_EQ(CompilerRuns(), before);
}

TEST_F(HostCompilerTest, AWarmCacheNeedsNoCompiler) {
  const auto compiler = Make();
  ASSERT_TRUE(compiler->Compile(kAnswer).ok());
  for (const std::string& missing : {std::string(), std::string("no-such-compiler")}) {
    const auto without = Make(missing);
    EXPECT_EQ(without->identity(), compiler->identity());
    const absl::StatusOr<Binary> binary = without->Compile(kAnswer);
    ASSERT_TRUE(binary.ok()) << binary.status();
    EXPECT_TRUE(binary->from_cache);
    EXPECT_EQ(CallAnswer(binary->path), 42);
    EXPECT_EQ(without->Compile("int other;").status().code(), absl::StatusCode::kUnavailable);
  }
}

TEST_F(HostCompilerTest, AsksTheCompilerAboutItselfOnlyOnce) {
  const std::string log = dir_ / "log", path = dir_ / "logging-c++";
  std::ofstream(path) << "#!/bin/sh\necho run >> " << log << "\nexec " << SystemCompiler()
                      << " \"$@\"\n";
  fs::permissions(path, fs::perms::owner_all);
  const auto runs = [&] {
    std::ifstream file(log);
    return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
  };
  ASSERT_TRUE(Make(path)->Compile(kAnswer).ok());
  EXPECT_EQ(runs(), 2) << "its version, and the compile";
  ASSERT_TRUE(Make(path)->Compile(kAnswer).ok());
  EXPECT_EQ(runs(), 2);
  // Another file under the same name, as after an upgrade.
  std::ofstream(path, std::ios::app) << "# changed\n";
  ASSERT_TRUE(Make(path)->Compile(kAnswer).ok());
  EXPECT_EQ(runs(), 3);
}

TEST_F(HostCompilerTest, IdentityNamesCompilerTargetFlagsAndHeadersAndNoPath) {
  const std::string fast = Make()->identity();
  EXPECT_THAT(fast,
              AllOf(HasSubstr(" version "), HasSubstr("; target "), HasSubstr("-ffp-contract=off"),
                    HasSubstr("-O1"), HasSubstr("; headers "), Not(HasSubstr(SystemCompiler()))));
  EXPECT_THAT(fast, HasSubstr(absl::StrCat("-march=", GetEnv().host_arch, " ")));
  EXPECT_THAT(fast, Not(HasSubstr("-ffast-math")));
  options_.optimize = Optimize::kFull;
  const std::string full = Make()->identity();
  EXPECT_NE(fast, full);
  EXPECT_EQ(absl::StrReplaceAll(fast, {{"-O1", "-O3"}}), full);
}

TEST_F(HostCompilerTest, SaysWhatToInstallWhenThereIsNoCompiler) {
  const absl::Status status = Make("")->Compile(kAnswer).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(),
            "host compiler: want c++, g++ or clang++, have no such program; install g++ or name a "
            "C++ compiler with "
            "COCONET_CXX");
}

TEST_F(HostCompilerTest, RefusesAProgramThatIsNoCompiler) {
  const absl::Status status = Make("/bin/echo")->Compile(kAnswer).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("want what g++ or clang++ prints"));
}

TEST_F(HostCompilerTest, ACompileErrorHasTheCompilersWordsAndTheLine) {
  const absl::Status status = Make()->Compile("int fine;\nint x = undeclared_name;\n").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("undeclared_name"), HasSubstr("kernel.cc:2:")));
}

TEST_F(HostCompilerTest, AnUndefinedSymbolIsACompileError) {
  const absl::Status status =
      Make()->Compile("extern \"C\" int elsewhere();\nint x = elsewhere();\n").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("elsewhere"));
}

TEST_F(HostCompilerTest, StopsACompilerAtTheTimeLimit) {
  options_.time_limit_s = 0.3;
  const auto compiler = Make(FakeCompiler("sleep 30 & wait"));
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status status = compiler->Compile(kAnswer).status();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("within 0.3 s"));
}

TEST_F(HostCompilerTest, AShortageIsNotBlamedOnTheSource) {
  for (const char* script :
       {"echo 'cannot write: No space left on device' >&2; exit 1", "kill -9 $$"}) {
    EXPECT_EQ(Make(FakeCompiler(script))->Compile(kAnswer).status().code(),
              absl::StatusCode::kResourceExhausted)
        << script;
  }
}

TEST_F(HostCompilerTest, AnOutputThatIsNotWholeIsNotKept) {
  const auto compiler = Make(FakeCompiler(absl::StrCat(
      SystemCompiler(),
      " \"$@\"; while [ $1 != -o ]; do shift; done; head -c 3000 $2 > $2.part; mv $2.part $2")));
  const absl::Status status = compiler->Compile(kAnswer).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("want a whole shared object, have 3000 bytes"));
  EXPECT_EQ(CallAnswer(Make()->Compile(kAnswer)->path), 42);
}

TEST_F(HostCompilerTest, WorksInAProcessThatIgnoresItsChildren) {
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(sigaction(SIGCHLD, &ignore, &before), 0);
  const absl::StatusOr<Binary> binary = Make()->Compile(kAnswer);
  const absl::Status wrong = Make()->Compile("wrong").status();
  sigaction(SIGCHLD, &before, nullptr);
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_EQ(CallAnswer(binary->path), 42);
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(HostCompilerTest, LeavesNothingInTheTemporaryDirectory) {
  const fs::path temporary = dir_ / "tmp";
  fs::create_directory(temporary);
  const char* before = std::getenv("TMPDIR");
  const std::string saved = before == nullptr ? "" : before;
  setenv("TMPDIR", temporary.c_str(), 1);
  const auto compiler = Make();
  EXPECT_TRUE(compiler->Compile(kAnswer).ok());
  EXPECT_FALSE(compiler->Compile("wrong").ok());
  options_.time_limit_s = 0.2;
  EXPECT_FALSE(Make(FakeCompiler("touch $TMPDIR/x; sleep 20"))->Compile("int slow;").ok());
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", saved.c_str(), 1);
  EXPECT_TRUE(fs::is_empty(temporary));
}

TEST_F(HostCompilerTest, ProcessesThatCompileTheSameAtOnceRunOneCompiler) {
  const std::string cxx =
      FakeCompiler(absl::StrCat("sleep 0.3; exec ", SystemCompiler(), " \"$@\""));
  Make(cxx);  // records the toolchain, so that children do not ask for it
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      const int64_t before = CompilerRuns();
      const absl::StatusOr<Binary> binary = Make(cxx)->Compile(kAnswer);
      const bool right = binary.ok() && CallAnswer(binary->path) == 42;
      _exit(right ? static_cast<int>(CompilerRuns() - before) : 100);
    }
    children.push_back(pid);
  }
  int compiles = 0;
  for (pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFEXITED(status));
    compiles += WEXITSTATUS(status);
  }
  EXPECT_EQ(compiles, 1);
}

TEST_F(HostCompilerTest, EveryCompilerOfTheMachineWorks) {
  std::vector<std::string> identities;
  for (const char* name : {"g++", "clang++"}) {
    if (FindProgram(name).empty()) continue;
    const auto compiler = Make(name);
    const absl::StatusOr<Binary> binary = compiler->Compile(kAnswer);
    ASSERT_TRUE(binary.ok()) << name << ": " << binary.status();
    EXPECT_FALSE(binary->from_cache) << name;
    EXPECT_EQ(CallAnswer(binary->path), 42);
    identities.push_back(compiler->identity());
  }
  EXPECT_FALSE(identities.empty());
}

TEST(BinaryTarget, IsTheArchitectureElseThisProcessor) {
  EXPECT_EQ(BinaryTarget("sm_90a", 13000), "sm_90a CUDA 13");
  EXPECT_EQ(BinaryTarget("sm_90a", 13020), BinaryTarget("sm_90a", 13000));
  EXPECT_NE(BinaryTarget("sm_90a", 12090), BinaryTarget("sm_90a", 13000));
  EXPECT_NE(BinaryTarget("sm_90", 13000), BinaryTarget("sm_90a", 13000));
  EXPECT_THAT(BinaryTarget("", 0), testing::StartsWith("processor "));
  EXPECT_EQ(BinaryTarget("", 0), BinaryTarget("", 13000));
}

TEST(ParseToolchain, ReadsGccAndClang) {
  const char gcc[] =
      "Using built-in specs.\nTarget: x86_64-linux-gnu\nThread model: posix\ngcc version 12.2.0 "
      "(Debian 12.2.0-14) \n"
      " /usr/lib/cc1plus -quiet - \"-march=znver3\" -mavx2 --param \"l1-cache-size=48\" -o "
      "/tmp/ccA.s\n";
  const char clang[] =
      "Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\nThread model: posix\n"
      " \"/usr/bin/clang\" \"-cc1\" \"-target-cpu\" \"znver3\" \"-target-feature\" \"+avx2\" "
      "\"-mllvm\" \"-x\"\n";
  const absl::StatusOr<Toolchain> g = ParseToolchain(gcc), c = ParseToolchain(clang);
  ASSERT_TRUE(g.ok()) << g.status();
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(g->version, "gcc version 12.2.0 (Debian 12.2.0-14)");
  EXPECT_EQ(c->version, "Debian clang version 14.0.6");
  EXPECT_THAT(g->target, ::testing::MatchesRegex("x86_64-linux-gnu [0-9a-f]{16}"));
  const auto with = [](std::string text, const char* from, const char* to) {
    return ParseToolchain(absl::StrReplaceAll(text, {{from, to}}))->target;
  };
  EXPECT_EQ(with(gcc, "/tmp/ccA.s", "/tmp/ccB.s"), g->target) << "the same machine";
  EXPECT_NE(with(gcc, "-mavx2", "-mavx512f"), g->target);
  EXPECT_NE(with(gcc, "l1-cache-size=48", "l1-cache-size=32"), g->target);
  EXPECT_NE(with(clang, "+avx2", "-avx2"), c->target);
  EXPECT_NE(with(clang, "znver3", "znver4"), c->target);
}

TEST(ParseToolchain, RefusesOtherText) {
  EXPECT_EQ(ParseToolchain("hello\n").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseToolchain("").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace coconet
