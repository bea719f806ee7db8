#include "jit/compile/nvrtc_compiler.h"

#include <elf.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kKernel[] = R"(#include "coconet/kernel.h"
struct Params { float* x; long long n; };
CC_KERNEL(square) {
  using namespace coconet;
  const Index threads = grid.GridSize() * grid.BlockSize();
  for (Index i = grid.BlockId() * grid.BlockSize() + grid.ThreadId(); i < p.n; i += threads) {
    p.x[i] = ScalarSqrt(p.x[i]) * p.x[i];
  }
}
)";

std::string Slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class NvrtcTest : public ::testing::Test {
 protected:
  NvrtcTest() : dir_(fs::path(::testing::TempDir()) / absl::StrCat("nvrtc-", getpid())) {
    options_.cache_dir = dir_;
  }
  ~NvrtcTest() override { fs::remove_all(dir_); }

  const fs::path dir_;
  CompilerOptions options_;
};

// ---- The real library

class RealNvrtcTest : public NvrtcTest {
 protected:
  void SetUp() override {
    if (const auto nvrtc = OpenNvrtc(); !nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  }

  std::unique_ptr<Compiler> Make(const std::string& arch = "sm_80") const {
    absl::StatusOr<std::unique_ptr<Compiler>> compiler = MakeNvrtcCompiler(arch, options_);
    EXPECT_TRUE(compiler.ok()) << compiler.status();
    return compiler.ok() ? *std::move(compiler) : nullptr;
  }
};

TEST_F(RealNvrtcTest, CompilesForEachArchitectureWithoutAGpu) {
  for (const char* arch : {"sm_80", "sm_90a", "sm_100"}) {
    for (Optimize optimize : {Optimize::kFast, Optimize::kFull}) {
      options_.optimize = optimize;
      const absl::StatusOr<Binary> binary = Make(arch)->Compile(kKernel);
      ASSERT_TRUE(binary.ok()) << arch << ": " << binary.status();
      EXPECT_FALSE(binary->from_cache) << arch;
      const std::string cubin = Slurp(binary->path);
      ASSERT_GT(cubin.size(), sizeof(Elf64_Ehdr));
      Elf64_Ehdr header;
      std::memcpy(&header, cubin.data(), sizeof header);
      EXPECT_EQ(std::memcmp(header.e_ident, ELFMAG, SELFMAG), 0);
      EXPECT_EQ(header.e_machine, 190) << "EM_CUDA";
      EXPECT_THAT(cubin, HasSubstr("square"));
    }
  }
}

TEST_F(RealNvrtcTest, AWarmCacheCompilesNothing) {
  ASSERT_TRUE(Make()->Compile(kKernel).ok());
  const int64_t before = CompilerRuns();
  const absl::StatusOr<Binary> binary = Make()->Compile(kKernel);
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_TRUE(binary->from_cache);
  EXPECT_EQ(CompilerRuns(), before);
}

TEST_F(RealNvrtcTest, ACompileErrorHasTheCompilersWordsAndTheLine) {
  const absl::Status status =
      Make()->Compile("int fine;\n__device__ int x = undeclared_name;\n").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("nvrtcCompileProgram for sm_80: NVRTC_ERROR_COMPILATION"),
                    HasSubstr("undeclared_name"), HasSubstr("kernel.cc(2)")));
}

TEST_F(RealNvrtcTest, RefusesWhatIsNotAnArchitecture) {
  for (const char* arch : {"compute_80", "sm_1", "80", "", "sm_80x y"}) {
    const absl::Status status = MakeNvrtcCompiler(arch, options_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << arch;
    EXPECT_THAT(std::string(status.message()), HasSubstr("want sm_ and one of ")) << arch;
  }
  EXPECT_EQ(Make("sm_80a")->Compile(kKernel).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RealNvrtcTest, TheTimeLimitStopsACompile) {
  options_.time_limit_s = 0;
  const absl::Status status = Make()->Compile(kKernel).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("want a kernel compiled within 0 s"));
}

TEST_F(RealNvrtcTest, IdentityNamesVersionArchitectureFlagsAndHeaders) {
  const std::string identity = Make("sm_90a")->identity();
  EXPECT_THAT(identity, ::testing::MatchesRegex(
                            "nvrtc [0-9]+\\.[0-9]+ [0-9a-f]{40}; flags .*; headers [0-9a-f]{16}"));
  EXPECT_THAT(identity, HasSubstr("--gpu-architecture=sm_90a"));
  EXPECT_NE(identity, Make("sm_80")->identity());
}

TEST_F(RealNvrtcTest, LeavesTheProcesssStackLimitAlone) {
  rlimit before = {}, after = {};
  ASSERT_EQ(getrlimit(RLIMIT_STACK, &before), 0);
  ASSERT_TRUE(Make()->Compile(kKernel).ok());
  ASSERT_EQ(getrlimit(RLIMIT_STACK, &after), 0);
  EXPECT_EQ(before.rlim_cur, after.rlim_cur);
}

/// Exits with 0 when the dumps have the expected content. The disassembler is a fake, because not
/// every machine has one.
[[noreturn]] void DumpAndExit(const fs::path& dir, const std::function<bool()>& compile) {
  fs::create_directories(dir / "bin");
  std::ofstream(dir / "bin" / "nvdisasm") << "#!/bin/sh\ntest -s \"$1\" && echo 'EXIT ;'\n";
  fs::permissions(dir / "bin" / "nvdisasm", fs::perms::owner_all);
  setenv("PATH", absl::StrCat((dir / "bin").string(), ":", std::getenv("PATH")).c_str(), 1);
  setenv("COCONET_DUMP", "ptx,sass", 1);
  setenv("COCONET_DUMP_DIR", (dir / "dumps").c_str(), 1);
  if (!compile()) std::exit(2);
  std::string ptx, sass;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir / "dumps")) {
    (entry.path().extension() == ".ptx" ? ptx : sass) = Slurp(entry.path());
  }
  std::exit(absl::StrContains(ptx, ".target sm_80") && sass == "EXIT ;\n" ? 0 : 1);
}

TEST_F(RealNvrtcTest, DumpsPtxAndSass) {
  ::testing::FLAGS_gtest_death_test_style =
      "threadsafe";  // the environment is read once per process
  EXPECT_EXIT(DumpAndExit(dir_, [&] { return Make()->Compile(kKernel).ok(); }),
              ::testing::ExitedWithCode(0), "");
}

// ---- A fake library whose calls fail one at a time

struct FakeState {
  std::string failing;  // the call that fails
  int result = 11;
  int live = 0;  // programs created and not destroyed
  int minor = 0;
  std::vector<std::string> options;
};
FakeState fake;

int Result(const char* call) { return fake.failing == call ? fake.result : 0; }

NvrtcApi FakeApi() {
  fake = FakeState();
  NvrtcApi api;
  api.Version = [](int* major, int* minor) {
    return *major = 12, *minor = fake.minor, Result("nvrtcVersion");
  };
  api.GetErrorString = [](int) { return "NVRTC_ERROR_FAKE"; };
  api.GetNumSupportedArchs = [](int* count) {
    return *count = 2, Result("nvrtcGetNumSupportedArchs");
  };
  api.GetSupportedArchs = [](int* archs) {
    return archs[0] = 80, archs[1] = 90, Result("nvrtcGetSupportedArchs");
  };
  api.CreateProgram = [](NvrtcApi::Program*, const char*, const char*, int, const char* const*,
                         const char* const*) {
    fake.live += fake.failing == "nvrtcCreateProgram" ? 0 : 1;
    return Result("nvrtcCreateProgram");
  };
  api.CompileProgram = [](NvrtcApi::Program, int count, const char* const* options) {
    fake.options.assign(options, options + count);
    return Result("nvrtcCompileProgram");
  };
  api.GetProgramLogSize = [](NvrtcApi::Program, size_t* size) { return *size = 10, 0; };
  api.GetProgramLog = [](NvrtcApi::Program, char* log) { return std::strcpy(log, "the words"), 0; };
  api.GetCUBINSize = [](NvrtcApi::Program, size_t* size) {
    return *size = 5, Result("nvrtcGetCUBINSize");
  };
  api.GetCUBIN = [](NvrtcApi::Program, char* cubin) {
    return std::memcpy(cubin, "cubin", 5), Result("nvrtcGetCUBIN");
  };
  api.DestroyProgram = [](NvrtcApi::Program*) { return --fake.live, 0; };
  api.SetFlowCallback = [](NvrtcApi::Program, int (*)(void*, void*), void*) {
    return Result("nvrtcSetFlowCallback");
  };
  api.build_id = "abc";
  return api;
}

class FakeNvrtcTest : public NvrtcTest {
 protected:
  absl::Status Compile() const {
    const absl::StatusOr<std::unique_ptr<Compiler>> compiler =
        MakeNvrtcCompilerOver(api_, "sm_90a", options_);
    if (!compiler.ok()) return compiler.status();
    return (*compiler)->Compile("text").status();
  }

  NvrtcApi api_ = FakeApi();
};

TEST_F(FakeNvrtcTest, EachFailingCallIsNamed) {
  for (const char* call :
       {"nvrtcVersion", "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs", "nvrtcCreateProgram",
        "nvrtcSetFlowCallback", "nvrtcGetCUBINSize", "nvrtcGetCUBIN"}) {
    fake.failing = call;
    EXPECT_EQ(Compile(), absl::InternalError(absl::StrCat(call, ": NVRTC_ERROR_FAKE")));
    EXPECT_EQ(fake.live, 0) << call;
  }
  fake.failing = "";
  EXPECT_TRUE(Compile().ok());
  EXPECT_EQ(fake.live, 0);
}

TEST_F(FakeNvrtcTest, AFailedCompileIsBlamedByItsResult) {
  fake.failing = "nvrtcCompileProgram";
  const std::pair<int, absl::StatusCode> blame[] = {
      {kNvrtcCompilation, absl::StatusCode::kInvalidArgument},
      {kNvrtcInvalidOption, absl::StatusCode::kInvalidArgument},
      {kNvrtcOutOfMemory, absl::StatusCode::kResourceExhausted},
      {kNvrtcCancelled, absl::StatusCode::kDeadlineExceeded},
      {11, absl::StatusCode::kInternal},
  };
  for (const auto& [result, code] : blame) {
    fake.result = result;
    const absl::Status status = Compile();
    EXPECT_EQ(status.code(), code) << result;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("nvrtcCompileProgram for sm_90a: NVRTC_ERROR_FAKE"));
    EXPECT_EQ(fake.live, 0);
  }
  EXPECT_EQ(Compile().message(), "nvrtcCompileProgram for sm_90a: NVRTC_ERROR_FAKE\nthe words");
}

TEST_F(FakeNvrtcTest, OptionsFollowTheVersion) {
  ASSERT_TRUE(Compile().ok());
  EXPECT_THAT(fake.options,
              ElementsAre("--gpu-architecture=sm_90a", "--std=c++20", "--modify-stack-limit=false",
                          "--device-as-default-execution-space"));
  fake.minor = 9;
  options_.optimize = Optimize::kFast;
  ASSERT_TRUE(Compile().ok());
  EXPECT_THAT(fake.options,
              ElementsAre("--gpu-architecture=sm_90a", "--std=c++20", "--modify-stack-limit=false",
                          "--device-as-default-execution-space", "--minimal", "--no-cache",
                          "--ptxas-options=-O1"));
}

TEST_F(FakeNvrtcTest, RefusesADriverThatDoesNotLoadWhatItMakes) {
  for (int driver : {0, 12000, 12040, 13000}) {
    options_.driver = driver;
    EXPECT_TRUE(Compile().ok()) << driver;
  }
  options_.driver = 11080;
  fake.minor = 9;
  EXPECT_EQ(Compile(),
            absl::FailedPreconditionError(
                "NVRTC 12.9 makes cubins that want a driver of CUDA 12.0 or later; this machine's "
                "is of CUDA 11.8: update "
                "the driver, or say in CUDA_HOME or LD_LIBRARY_PATH where an NVRTC of CUDA 11 is"));
}

TEST_F(FakeNvrtcTest, WorksWithAnNvrtcThatCannotBeStopped) {
  api_.SetFlowCallback = nullptr;
  EXPECT_TRUE(Compile().ok());
}

TEST(OpenNvrtc, WhenAbsentSaysWhatToDo) {
  const auto nvrtc = OpenNvrtc();
  if (nvrtc.ok()) GTEST_SKIP() << "NVRTC is here";
  EXPECT_EQ(nvrtc.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(nvrtc.status().message()),
              AllOf(HasSubstr("./setup.sh"), HasSubstr("libnvrtc.so.13: ")));
}

}  // namespace
}  // namespace coconet
