// Verification of long results on GPUs whose kernel that compares them does not compile, on a
// driver that runs kernels of the host dialect.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "autotune/measure/result_kernels.h"
#include "autotune/runner/rank_runner.h"
#include "coconet/base/status.h"
#include "coconet/schedule/derivation/derive.h"
#include "coconet/workloads/workloads.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"
#include "runtime/cuda/cuda_world_over.h"
#include "runtime/cuda/testing/host_driver.h"

namespace coconet {
namespace {

/// The host's compiler, which refuses the kernel of ResultKernels.
class Refusing final : public Compiler {
 public:
  Refusing(std::unique_ptr<Compiler> compiler, absl::Status why)
      : compiler_(std::move(compiler)), why_(std::move(why)) {}
  const std::string& identity() const override { return compiler_->identity(); }
  absl::StatusOr<Binary> Compile(const KernelSource& source) override {
    if (source == ResultKernels::Source()) {
      ++refused;
      return why_;
    }
    return compiler_->Compile(source);
  }
  int refused = 0;

 private:
  std::unique_ptr<Compiler> compiler_;
  absl::Status why_;
};

/// Verifies the plain variant, twice, where the kernel's compile ends with `why`.
absl::Status VerifyWith(const absl::Status& why) {
  const Graph program =
      BindSizes(MakeWorkload("sgd").value(), {{"N", Reference::kFullElements + 77}}).value();
  const std::vector<Schedule> schedules = Derive(program).value();
  std::vector<Variant> variants(1);
  for (const Schedule& schedule : schedules) {
    if (schedule.launches().list.size() == 1) variants[0].schedule = schedule;
  }
  variants[0].config = {
      .protocol = Protocol::kGenerated, .vec = 4, .chunk = 4096, .blocks = 2, .threads = 32};
  SetHostDevices({.count = 1, .multiprocessors = 4});
  return RunCudaWorldOver(
      {.driver = HostDriver(), .control = ControlOfHostKernels()}, {.ranks = 2},
      [&](Rank& rank) -> absl::Status {
        const std::string folder = absl::StrCat(testing::TempDir(), "/objects");
        std::shared_ptr<Refusing> compiler;
        Binaries::Options options;
        options.target = BinaryTarget("", 0);
        options.cache_dir = folder;
        options.compiler = [&]() -> absl::StatusOr<std::shared_ptr<Compiler>> {
          ASSIGN_OR_RETURN(std::unique_ptr<Compiler> host,
                           MakeHostCompiler({.cache_dir = folder, .optimize = Optimize::kFast}));
          compiler = std::make_shared<Refusing>(std::move(host), why);
          return compiler;
        };
        ASSIGN_OR_RETURN(const std::unique_ptr<Binaries> binaries, Binaries::Open(rank, options));
        ASSIGN_OR_RETURN(const std::unique_ptr<RankRunner> runner,
                         RankRunner::Create(rank, variants[0].schedule.graph(), variants,
                                            {.seed = 7, .binaries = binaries.get()}));
        ASSIGN_OR_RETURN(const std::vector<std::optional<Failure>> compiled,
                         runner->Compile({0}, [] { return false; }));
        EXPECT_FALSE(compiled[0].has_value()) << compiled[0]->reason;
        ASSIGN_OR_RETURN(std::optional<Failure> failure, runner->Load(0));
        for (int time = 0; time < 2 && !failure.has_value(); ++time) {
          ASSIGN_OR_RETURN(failure, runner->Verify(0));
        }
        EXPECT_FALSE(failure.has_value()) << failure->reason;
        if (compiler != nullptr) {
          EXPECT_EQ(compiler->refused, 1);
        }
        return absl::OkStatus();
      });
}

TEST(CudaVerification, ComparesOnTheHostWhereNothingCompilesTheKernel) {
  for (const absl::Status& why :
       {absl::UnavailableError("no compiler"), absl::FailedPreconditionError("may not compile")})
    EXPECT_EQ(VerifyWith(why), absl::OkStatus()) << why;
}

TEST(CudaVerification, AKernelThatIsWrongIsAnError) {
  EXPECT_TRUE(absl::IsInvalidArgument(VerifyWith(absl::InvalidArgumentError("a mistake"))));
}

}  // namespace
}  // namespace coconet
