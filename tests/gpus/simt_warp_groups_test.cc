// Products of warp groups on simulated threads: their numbers, and what the machine finds in
// kernels that are planted with mistakes.

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/dtype.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/simt/testing/simt_lab.h"
#include "tests/gpus/simt_image.h"
#include "tests/gpus/warp_group_kernels.h"

namespace coconet {
namespace {

using ::testing::ContainsRegex;

constexpr int kRows = 64, kDepth = 64, kWords = 1 << 15;
constexpr int kPlaceOfB = 2048, kPlaceOfSums = 10240;  // words

/// Element (line, k) of an operand: an integer from -8 to 8, so that sums are exact.
int Element(int line, int k, int salt) { return (line * 7 + k * 5 + salt * 3 + line * k) % 17 - 8; }

/// With the product's kernels and its operands.
class Lab : public SimtLab {
 public:
  explicit Lab(const SimtOptions& options, DType type = DType::kBF16, bool transpose_a = false,
               bool transpose_b = true, int columns = 128)
      : SimtLab(TheImage(), options, kWords),
        columns_(columns),
        depth_(IsFloat8(type) ? 2 * kDepth : kDepth) {
    Fill(type, 0, kRows, transpose_a, 1);
    Fill(type, kPlaceOfB, columns, transpose_b, 2);
  }

  /// The difference of the sums to those of the elements, which are added to `initial`; "" if there
  /// is none.
  std::string Differ(int initial = 1) { return Differ(initial, depth_); }
  /// The same of elements `depth` deep.
  std::string Differ(int initial, int depth) {
    std::vector<float> sums(static_cast<size_t>(kRows) * columns_);
    std::memcpy(sums.data(), params().a + kPlaceOfSums, sums.size() * sizeof(float));
    for (int i = 0; i < kRows * columns_; ++i) {
      int want = initial;
      for (int k = 0; k < depth; ++k)
        want += Element(i / columns_, k, 1) * Element(i % columns_, k, 2);
      if (sums[i] != static_cast<float>(want))
        return absl::StrCat("sum ", i, " is ", sums[i], ": want ", want);
    }
    return "";
  }

 private:
  static const std::string& TheImage() {
    static const auto* image = new std::string(SimtImage(ProductKernels().c_str()));
    return *image;
  }
  void Fill(DType type, int place, int lines, bool transposed, int salt) {
    for (int line = 0; line < lines; ++line) {
      for (int k = 0; k < depth_; ++k)
        StoreElement(type, params().a + place, transposed ? k * lines + line : line * depth_ + k,
                     Element(line, k, salt));
    }
  }

  const int columns_, depth_;
};

TEST(SimtWarpGroups, Multiply8BitFloatsAlongK) {
  const std::vector<SimtOptions> all = SimtInterleavings();
  for (const auto& [type, sums] : {std::pair(DType::kF8E4M3, 32),
                                   {DType::kF8E4M3, 96},
                                   {DType::kF8E5M2, 64},
                                   {DType::kF8E5M2, 128}}) {
    const std::string kernel = absl::StrCat("product_", Name(type), "_nn_", sums);
    Lab lab(all[static_cast<size_t>(sums) / 32 % all.size()], type, false, false, 2 * sums);
    EXPECT_EQ(lab.Run(kernel.c_str(), 1, 128), "");
    EXPECT_EQ(lab.Differ(), "") << kernel;
  }
}

TEST(SimtWarpGroups, MultiplyOperandsOfAllLayouts) {
  size_t number = 0;
  const std::vector<SimtOptions> all = SimtInterleavings();
  for (const DType type : {DType::kF16, DType::kBF16}) {
    for (const int sums : {32, 64, 96, 128}) {
      if (type == DType::kBF16 && sums != 32 && sums != 128) continue;
      for (const bool transpose_a : {false, true}) {
        for (const bool transpose_b : {false, true}) {
          const std::string kernel =
              absl::StrCat("product_", Name(type), "_", transpose_a ? "t" : "n",
                           transpose_b ? "t" : "n", "_", sums);
          Lab lab(all[number++ % all.size()], type, transpose_a, transpose_b, 2 * sums);
          EXPECT_EQ(lab.Run(kernel.c_str(), 1, 128), "");
          EXPECT_EQ(lab.Differ(), "") << kernel;
        }
      }
    }
  }
}

TEST(SimtWarpGroups, MultiplyInAllInterleavings) {
  for (const SimtOptions& options : SimtInterleavings()) {
    Lab lab(options, DType::kF16);
    EXPECT_EQ(lab.Run("product_f16_nt_64", 1, 128), "");
    EXPECT_EQ(lab.Differ(), "");
  }
}

TEST(SimtWarpGroups, FindsMistakesWithProducts) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"no_proxy_fence",
       "data race: no_proxy_fence .* multiplies .* wrote there before, and no "
       "fence of proxies is between"},
      {"early_proxy_fence", "data race: early_proxy_fence .* and no fence of proxies is between"},
      {"no_barrier", "data race: no_barrier .* shared memory|never written: no_barrier .*"},
      {"no_fence", "bad product: no_fence .* there was no fence before: want wgmma.fence"},
      {"early_fence", "bad product: early_fence .* no fence is between an access of its sums"},
      {"no_commit", "bad product: no_commit .* reads sums of a product in flight"},
      {"no_wait", "unfinished product: no_wait .* ended without awaiting this product"},
      {"waits_for_others", "bad product: waits_for_others .* reads sums of a product in flight"},
      {"reads_early", "bad product: reads_early .* thread 77 reads sums of a product in flight"},
      {"writes_early", "bad product: writes_early .* thread 77 writes sums of a product in flight"},
      {"overwrites",
       "data race: overwrites .* thread 77 writes .* a product, not awaited yet, of "
       ".* read byte"},
      {"overwrites_by_copy",
       "data race: overwrites_by_copy .* thread 77 writes .* a product, not "
       "awaited yet, of .* read byte"},
      {"between_pieces", "misaligned: between_pieces .* an operand a whose start is 8 bytes"},
      {"three_warps",
       "divergent warp group: three_warps .* begins a product, where thread .* has "
       "ended|divergent warp group: .* fences"},
      {"half_warp", "divergent warp group: half_warp .* where thread .* has ended"},
      {"other_line", "divergent warp group: other_line .* begins a product, where other_line"},
      {"other_operands", "bad product: other_operands .* multiplies other operands than thread"},
      {"other_adds", "bad product: other_adds .* multiplies other operands than thread"},
      {"unfilled", "never written: unfilled .* shared memory of block 0"},
      {"far_rows", "out of bounds: far_rows .* reads 16 bytes at bytes .* of shared memory"},
      {"odd_stride", "bad product: odd_stride .* with strides of 0 and 1020 bytes"},
      {"global_operand", "bad product: global_operand .* want shared memory of its block"},
      {"touches", "bad product: touches .* no fence is between an access of its sums and this"},
      {"looks", "bad product: looks .* no fence is between an access of its sums and this"},
      {"at_a_barrier", "divergent (warp group|barrier): at_a_barrier"},
      {"in_a_shuffle", "divergent warp group: in_a_shuffle|bad shuffle: in_a_shuffle"},
      {"two_shapes", "bad product: two_shapes .* a product of 32 sums, where one of 64 is in"},
      {"before_the_wait",
       "data race: before_the_wait .* (a product, not awaited yet, of|thread) "}};
  for (const SimtOptions& options : SimtInterleavings()) {
    for (const auto& [kernel, found] : mistakes)
      EXPECT_THAT(Lab(options).Run(kernel, 1, 128), ContainsRegex(found)) << kernel;
  }
}

// As on hardware, what lies elsewhere than the descriptor says gives other numbers.
TEST(SimtWarpGroups, MultiplyWhatTheDescriptorNames) {
  for (const SimtOptions& options : SimtInterleavings()) {
    for (const char* kernel : {"no_swizzle", "between_patterns"}) {
      Lab lab(options);
      EXPECT_EQ(lab.Run(kernel, 1, 128), "");
      EXPECT_NE(lab.Differ(), "") << kernel;
    }
  }
}

TEST(SimtWarpGroups, SumsThatNobodyAccessedNeedNoOtherFence) {
  for (const SimtOptions& options : SimtInterleavings()) {
    Lab lab(options);
    EXPECT_EQ(lab.Run("waits_twice", 1, 128), "");
    EXPECT_EQ(lab.Differ(/*initial=*/0, /*depth=*/16), "");  // the second product does not add
  }
}

// Where a barrier of arrivals orders the stores before the products.
TEST(SimtWarpGroups, SeeStoresThatAFenceIsBehind) {
  for (const SimtOptions& options : SimtInterleavings()) {
    for (const char* kernel : {"writers_fence", "readers_fence"}) {
      Lab lab(options);
      EXPECT_EQ(lab.Run(kernel, 1, 256), "");
      EXPECT_EQ(lab.Differ(), "") << kernel;
    }
    for (const char* kernel : {"nobody_fences", "fences_before_stores", "fences_behind_arrivals"}) {
      EXPECT_THAT(Lab(options).Run(kernel, 1, 256),
                  ContainsRegex("data race: .* multiplies .* wrote there before, and no fence of "
                                "proxies is between"))
          << kernel;
    }
  }
}

TEST(SimtWarpGroups, AreWhole) {
  EXPECT_THAT(Lab(SimtOptions::Of(0)).Run("product_bf16_nt_32", 1, 96),
              ContainsRegex("divergent warp group: .* want a whole warp group, which has 128"));
}

}  // namespace
}  // namespace coconet
