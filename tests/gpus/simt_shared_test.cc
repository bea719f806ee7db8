// Dynamic shared memory on simulated GPUs: what the machine finds in kernels with planted mistakes,
// and what the driver refuses.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"
#include "runtime/simt/simt_driver.h"
#include "runtime/simt/simt_world.h"
#include "runtime/simt/testing/simt_lab.h"
#include "tests/gpus/simt_image.h"

namespace coconet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kBytes = 100 << 10;
constexpr int64_t kWords = kBytes / 4;

constexpr char kKernels[] = R"(#include "coconet/kernel.h"
using namespace coconet;
struct Params { Control* control; unsigned* a; unsigned* flag; u64* words; Index n; };

CC_DEVICE unsigned* Values() {
  CC_DYNAMIC_SHARED(shared);
  return reinterpret_cast<unsigned*>(shared);
}
CC_KERNEL(reverses) {
  CC_DYNAMIC_SHARED(shared);
  unsigned* const values = reinterpret_cast<unsigned*>(shared);
  for (Index i = grid.ThreadId(); i < p.n; i += grid.BlockSize()) values[i] = p.a[i] + unsigned(i);
  grid.Sync();
  for (Index i = grid.ThreadId(); i < p.n; i += grid.BlockSize()) p.a[i] = Values()[p.n - 1 - i];
}
CC_KERNEL(reads_before_it_writes) {
  unsigned* const values = Values();
  if (grid.ThreadId() != 3) values[grid.ThreadId()] = 1;
  grid.Sync();
  p.a[grid.ThreadId()] = values[grid.ThreadId()];
}
CC_KERNEL(reads_what_another_block_wrote) {
  unsigned* const values = Values();
  if (grid.BlockId() == 0) values[0] = 1;
  p.a[grid.BlockId()] = values[0];
}
CC_KERNEL(races) {
  unsigned* const values = Values();
  values[grid.ThreadId()] = 1;
  p.a[grid.ThreadId()] = values[(grid.ThreadId() + 1) % grid.BlockSize()];
}
CC_KERNEL(writes_behind) { Values()[p.n] = 1; }
CC_KERNEL(writes_before) { Values()[-1] = 1; }
CC_KERNEL(aligns) {
  CC_SHARED(unsigned, declared, 3);
  declared[grid.ThreadId() % 3] = 1;
  p.a[grid.ThreadId()] = unsigned(reinterpret_cast<u64>(Values()) % 1024);
}
)";

/// With these kernels.
class Lab : public SimtLab {
 public:
  explicit Lab(const SimtOptions& options = {}) : SimtLab(TheImage(), options, kWords) {}

 private:
  static const std::string& TheImage() {
    static const auto* image = new std::string(SimtImage(kKernels));
    return *image;
  }
};

TEST(SimtShared, BlocksHaveAsMuchAsTheirLaunchSays) {
  for (const SimtOptions& options : SimtInterleavings()) {
    Lab lab(options);
    for (int64_t i = 0; i < kWords; ++i) lab.params().a[i] = static_cast<unsigned>(2 * i);
    ASSERT_EQ(lab.Run("reverses", 1, 64, kBytes), "");
    for (int64_t i = 0; i < kWords; ++i) ASSERT_EQ(lab.params().a[i], 3 * (kWords - 1 - i)) << i;
    Lab aligned(options);
    aligned.params().a[0] = 1;
    EXPECT_EQ(aligned.Run("aligns", 1, 1, kBytes), "");
    EXPECT_EQ(aligned.params().a[0], 0u);
  }
}

TEST(SimtShared, FindsReadsOfWhatNobodyWrote) {
  EXPECT_THAT(Lab().Run("reads_before_it_writes", 1, 64, kBytes),
              AllOf(HasSubstr("never written: reads_before_it_writes"),
                    HasSubstr("thread 3 reads bytes [12, 16) of the dynamic shared memory of block "
                              "0 on rank 0; nothing has written byte 12")));
  // The second block may get the same memory.
  EXPECT_THAT(Lab({.resident_blocks = 1}).Run("reads_what_another_block_wrote", 2, 1, kBytes),
              AllOf(HasSubstr("never written: reads_what_another_block_wrote"),
                    HasSubstr("bytes [0, 4) of the dynamic shared memory of block 1 on rank 0")));
}

TEST(SimtShared, FindsRaces) {
  for (const SimtOptions& options : SimtInterleavings()) {
    EXPECT_THAT(Lab(options).Run("races", 1, 64, kBytes),
                testing::ContainsRegex(
                    "^(data race|never written): .*of the dynamic shared memory of block 0"));
  }
}

TEST(SimtShared, FindsAccessesOutsideOfIt) {
  EXPECT_THAT(Lab().Run("writes_behind", 1, 1, kBytes),
              AllOf(HasSubstr("out of bounds: writes_behind"),
                    HasSubstr("writes 4 bytes at bytes [102400, 102404) of the dynamic shared "
                              "memory of block 0 on rank 0, which has 102400 bytes")));
  EXPECT_THAT(Lab().Run("writes_before", 1, 1, kBytes), HasSubstr("out of bounds: writes_before"));
  EXPECT_THAT(Lab().Run("reverses", 1, 64, kBytes / 2),
              HasSubstr("the dynamic shared memory of block 0 on rank 0, which has 51200 bytes"));
  EXPECT_THAT(Lab().Run("reverses", 1, 1),
              HasSubstr("the dynamic shared memory of block 0 on rank 0, which has 0 bytes"));
}

// ---- The driver

constexpr char kPlanKernels[] = R"(#include "coconet/kernel.h"
using namespace coconet;
struct Params { unsigned* a; Index n; };
CC_KERNEL_OF(fills, 64) {
  CC_DYNAMIC_SHARED(shared);
  unsigned* const values = reinterpret_cast<unsigned*>(shared);
  for (Index i = grid.ThreadId(); i < p.n; i += grid.BlockSize()) values[i] = unsigned(i);
  grid.Sync();
  for (Index i = grid.ThreadId(); i < p.n; i += grid.BlockSize()) p.a[i] = values[p.n - 1 - i];
}
)";

/// Calls `body` with a module of these kernels on a rank with a simulated GPU.
absl::Status WithModule(const std::function<absl::Status(Rank& rank, const Module& module)>& body) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                   MakeSimtCompiler({.cache_dir = absl::StrCat(testing::TempDir(), "/cache")}));
  ASSIGN_OR_RETURN(const Binary binary, compiler->Compile(kPlanKernels));
  return RunSimtWorld({.ranks = 1}, {}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, rank.Load(binary.path));
    return body(rank, *module);
  });
}

Plan FillingPlan(int threads, int64_t shared_bytes) {
  using Kind = Arg::Kind;
  KernelStep step{.symbol = "fills", .args = {{Kind::kOwn, 0}, {Kind::kInt, -1, kWords}}};
  step.label = "fill", step.threads = threads, step.shared_bytes = shared_bytes;
  return {.buffers = {{"a", BufferRole::kOutput, DType::kI32, kWords, false}}, .steps = {step}};
}

absl::Status BindAndRun(Rank& rank, const Module& module, int threads, int64_t shared_bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Memory> memory, rank.Allocate(kBytes, false));
  Memory* const buffers[] = {memory.get()};
  ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> plan,
                   rank.Bind(FillingPlan(threads, shared_bytes), module, buffers, 0));
  RETURN_IF_ERROR(plan->Run());
  ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> graph, plan->Capture(2));
  RETURN_IF_ERROR(graph->Run());
  std::vector<int32_t> values(kWords);
  RETURN_IF_ERROR(memory->Read(0, kBytes, values.data()));
  for (int64_t i = 0; i < kWords; ++i) EXPECT_EQ(values[i], kWords - 1 - i);
  return absl::OkStatus();
}

TEST(SimtShared, OfAPlanIsWhatItsLaunchesAndGraphsGive) {
  EXPECT_EQ(WithModule([](Rank& rank, const Module& module) {
              return BindAndRun(rank, module, 64, kBytes);
            }),
            absl::OkStatus());
}

TEST(SimtShared, OfAPlanIsRefusedBeyondThatOfABlock) {
  const absl::Status status = WithModule([](Rank& rank, const Module& module) {
    return BindAndRun(rank, module, 64, (227 << 10) + 1);
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Bind: fill: want at most 232448 bytes of shared memory for a block on GPU "
                        "0, have 232449"));
}

TEST(SimtShared, DriverRefusesLaunchesThatTheFunctionDoesNotAllow) {
  const absl::Status status = WithModule([](Rank&, const Module& module) -> absl::Status {
    ASSIGN_OR_RETURN(void* symbol, module.Symbol("fills"));
    const auto function = static_cast<CUfunction>(symbol);
    const auto allow = [&](CUfunction_attribute attribute, int value) {
      return SimtDriver().FuncSetAttribute(function, attribute, value);
    };
    const auto launch = [&](unsigned bytes) {
      CUlaunchConfig config{};
      config.gridDimX = config.blockDimX = 1, config.sharedMemBytes = bytes;
      void* params[] = {nullptr};
      return SimtDriver().LaunchKernelEx(&config, function, params, nullptr);
    };
    constexpr auto kMost = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    EXPECT_EQ(launch((48 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(allow(kMost, (227 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(allow(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(allow(kMost, 64 << 10), CUDA_SUCCESS);
    EXPECT_EQ(launch((64 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::OkStatus());
}

TEST(SimtShared, DriverRefusesBlocksLargerThanTheKernelsBound) {
  const absl::Status status = WithModule(
      [](Rank& rank, const Module& module) { return BindAndRun(rank, module, 96, kBytes); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cuLaunchKernelEx"));
}

}  // namespace
}  // namespace coconet
