// Exponentials of the host's kernels against the C library's, in double precision.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

constexpr char kKernel[] = R"(#include "coconet/kernel.h"
struct Params { const float* x; float* y; long long n; };
template <int V, class F> CC_DEVICE void Map(const Params& p, F&& f) {
  using namespace coconet;
  for (Index i = 0; i < p.n; i += V) Store<kCached>(p.y + i, f(Load<V>(p.x + i)));
}
#define CC_MAP(name, Function, V) \
  CC_KERNEL(name) { Map<V>(p, [](auto x) { return coconet::Function(x); }); }
CC_MAP(exp_by_1, Exp, 1)
CC_MAP(exp_by_16, Exp, 16)
CC_MAP(exp_by_64, Exp, 64)
CC_MAP(erf_by_1, Erf, 1)
CC_MAP(erf_by_16, Erf, 16)
CC_MAP(erf_by_64, Erf, 64)
CC_MAP(tanh_by_1, Tanh, 1)
CC_MAP(tanh_by_16, Tanh, 16)
CC_MAP(tanh_by_64, Tanh, 64)
)";

struct Params {
  const float* x;
  float* y;
  long long n;
};

/// What is between neighbouring floats about `x`.
double UnitOf(double x) {
  return std::ldexp(1, std::max(x == 0 ? -126 : std::ilogb(x), -126) - 23);
}

class HostFunctionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(::testing::TempDir()) / absl::StrCat("functions-", getpid());
    const absl::StatusOr<std::unique_ptr<Compiler>> compiler =
        MakeHostCompiler({.cache_dir = dir_.string()});
    ASSERT_TRUE(compiler.ok()) << compiler.status();
    const absl::StatusOr<Binary> binary = (*compiler)->Compile(kKernel);
    ASSERT_TRUE(binary.ok()) << binary.status();
    library_ = dlopen(binary->path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  void TearDown() override {
    if (library_ != nullptr) dlclose(library_);
    fs::remove_all(dir_);
  }

  void Map(const std::string& name, const std::vector<float>& x, std::vector<float>& y) const {
    auto* kernel = reinterpret_cast<void (*)(const void*, int, int)>(dlsym(library_, name.c_str()));
    ASSERT_NE(kernel, nullptr) << name;
    const Params params{x.data(), y.data(), static_cast<long long>(x.size())};
    kernel(&params, 0, 1);
  }

  /// One float in 251 of all, which are of all magnitudes and signs, infinite and NaN.
  void Check(const std::string& name, double (*exact)(double), double most_units) const {
    constexpr size_t kBlock = 1 << 16;
    constexpr uint64_t kEvery = 251, kAll = uint64_t{1} << 32;
    std::vector<float> x(kBlock), y(kBlock), by_one(kBlock), by_64(kBlock);
    double worst = 0;
    for (uint64_t bits = 0; bits < kAll; bits += kBlock * kEvery) {
      for (size_t i = 0; i < kBlock; ++i) {
        const auto word = static_cast<uint32_t>(bits + i * kEvery);
        std::memcpy(&x[i], &word, sizeof(word));
      }
      Map(name + "_by_16", x, y);
      Map(name + "_by_1", x, by_one);
      Map(name + "_by_64", x, by_64);
      for (size_t i = 0; i < kBlock; ++i) {
        const double want = exact(x[i]);
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(y[i])) << name << "(" << x[i] << ") = " << y[i];
          continue;
        }
        ASSERT_EQ(std::memcmp(&y[i], &by_one[i], sizeof(float)), 0) << name << "(" << x[i] << ")";
        ASSERT_EQ(std::memcmp(&y[i], &by_64[i], sizeof(float)), 0) << name << "(" << x[i] << ")";
        if (std::isinf(static_cast<float>(want)) || std::isinf(y[i])) {
          ASSERT_EQ(y[i], static_cast<float>(want)) << name << "(" << x[i] << ")";
          continue;
        }
        const double units = std::fabs(y[i] - want) / UnitOf(want);
        ASSERT_LE(units, most_units) << name << "(" << x[i] << ") = " << y[i] << ", want " << want;
        worst = std::max(worst, units);
      }
    }
    RecordProperty(name + "_units", absl::StrCat(worst));
    EXPECT_GT(worst, 0.5) << "of rounding alone";
  }

 private:
  fs::path dir_;
  void* library_ = nullptr;
};

TEST_F(HostFunctionsTest, Exp) { Check("exp", std::exp, 1.4); }
TEST_F(HostFunctionsTest, Erf) { Check("erf", std::erf, 1.4); }
TEST_F(HostFunctionsTest, Tanh) { Check("tanh", std::tanh, 1.4); }

}  // namespace
}  // namespace coconet
