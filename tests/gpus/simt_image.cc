#include "tests/gpus/simt_image.h"

#include <cstdint>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"

namespace coconet {

std::string SimtImage(const char* kernels) {
  const auto compiler = MakeSimtCompiler({.cache_dir = absl::StrCat(testing::TempDir(), "/cache")});
  CC_CHECK(compiler.ok());
  const absl::StatusOr<Binary> binary = (*compiler)->Compile(kernels);
  EXPECT_EQ(binary.status(), absl::OkStatus());
  std::ifstream file(binary.ok() ? binary->path : "", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<SimtOptions> SimtInterleavings() {
  std::vector<SimtOptions> all;
  for (uint64_t seed = 0; seed < 3 * kSimtOrders; ++seed) all.push_back(SimtOptions::Of(seed));
  return all;
}

}  // namespace coconet
