#include "jit/compile/testing/cubin.h"

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"

namespace coconet {
namespace {

using ::testing::HasSubstr;

/// `plain` needs next to nothing; `shares` needs 4096 bytes of shared memory per block; `spills`
/// needs a local array per thread, because its index is dynamic.
constexpr char kKernels[] = R"(
extern "C" __global__ void plain(float* x) { x[threadIdx.x] += 1; }
extern "C" __global__ void shares(float* x) {
  __shared__ float all[1024];
  all[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = all[1023 - threadIdx.x];
}
extern "C" __global__ void spills(float* x, int n) {
  float mine[64];
  for (int i = 0; i < 64; ++i) mine[i] = x[i * n];
  for (int i = 0; i < n; ++i) mine[(i * n) % 64] += mine[i % 64];
  x[threadIdx.x] = mine[threadIdx.x % 64];
}
)";

class CubinTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Compiler>> compiler =
        MakeNvrtcCompiler("sm_90a", {.cache_dir = absl::StrCat(testing::TempDir(), "/cache")});
    if (absl::IsUnavailable(compiler.status())) GTEST_SKIP() << compiler.status().message();
    ASSERT_TRUE(compiler.ok()) << compiler.status();
    const absl::StatusOr<Binary> binary = (*compiler)->Compile(kKernels);
    ASSERT_TRUE(binary.ok()) << binary.status();
    std::ifstream file(binary->path, std::ios::binary);
    cubin_ = std::string(std::istreambuf_iterator<char>(file), {});
  }
  std::string cubin_;
};

TEST_F(CubinTest, SaysWhatEachKernelTakes) {
  const absl::StatusOr<std::vector<KernelResources>> all = ResourcesOf(cubin_);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 3u);
  const KernelResources &plain = (*all)[0], &shares = (*all)[1], &spills = (*all)[2];
  EXPECT_EQ(plain.kernel, "plain");
  EXPECT_GE(plain.registers, 4u);
  EXPECT_LE(plain.registers, 16u);
  EXPECT_EQ(plain.stack_bytes, 0u);
  EXPECT_EQ(plain.shared_bytes, 0u);
  EXPECT_GE(shares.shared_bytes, 4096u);
  EXPECT_LE(shares.shared_bytes, 4096u + 1024u);  // 1024: reserved by the system
  EXPECT_GE(spills.stack_bytes, 256u);
}

TEST_F(CubinTest, RefusesWhatIsNotWhole) {
  EXPECT_THAT(std::string(ResourcesOf("").status().message()), HasSubstr("want an ELF file"));
  EXPECT_THAT(std::string(ResourcesOf(std::string(4096, 'x')).status().message()),
              HasSubstr("want an ELF file"));
  // Cut at any place: an error, or, beyond what is read, the whole answer; never a crash.
  const absl::StatusOr<std::vector<KernelResources>> whole = ResourcesOf(cubin_);
  for (size_t size = 0; size < cubin_.size(); size += 7) {
    const absl::StatusOr<std::vector<KernelResources>> cut =
        ResourcesOf(absl::string_view(cubin_).substr(0, size));
    if (cut.ok()) {
      EXPECT_EQ(*cut, *whole) << size;
    }
  }
  for (size_t at = 0; at < cubin_.size(); at += 3) {
    std::string bent = cubin_;
    bent[at] = static_cast<char>(~bent[at]);
    ResourcesOf(bent).status().IgnoreError();
  }
}

}  // namespace
}  // namespace coconet
