// The kernels of warp groups compile for GPUs as well, so that both dialects have the same
// functions. Needs no GPU.

#include "tests/gpus/warp_group_kernels.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"

namespace coconet {
namespace {

TEST(WarpGroupKernels, CompileForHopper) {
  constexpr double kCompileLimit = 600;  // seconds, on a busy machine
  const absl::StatusOr<std::unique_ptr<Compiler>> compiler = MakeNvrtcCompiler(
      "sm_90a",
      {.cache_dir = absl::StrCat(testing::TempDir(), "/cache"), .time_limit_s = kCompileLimit});
  if (absl::IsUnavailable(compiler.status())) GTEST_SKIP() << compiler.status().message();
  ASSERT_TRUE(compiler.ok()) << compiler.status();
  for (const std::string& text : {ProductKernels(), RingKernels(), PartKernels()})
    EXPECT_EQ((*compiler)->Compile(text).status(), absl::OkStatus());
}

}  // namespace
}  // namespace coconet
