// Tensor loads on simulated threads, as a ring of slabs that warp groups multiply: the numbers, and
// what the machine finds in rings that are planted with mistakes.

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

constexpr int kRows = 128, kColumns = 64, kWords = 1 << 15;
constexpr int kPlaceOfB = 12288;  // words

/// Element (line, k) of an operand: an integer from -8 to 8, so that sums are exact.
int Element(int line, int k, int salt) { return (line * 7 + k * 5 + salt * 3 + line * k) % 17 - 8; }

/// With the ring's kernels, and operands of some rows and columns fewer than a tile has.
class Lab : public SimtLab {
 public:
  Lab(const SimtOptions& options, bool along_k, int k)
      : SimtLab(TheImage(), options, kWords), depth_(k) {
    params().n = k;
    Fill(0, 0, kHasRows, along_k, 1);
    Fill(1, kPlaceOfB, kHasColumns, along_k, 2);
  }
  explicit Lab(const SimtOptions& options) : Lab(options, /*along_k=*/false, 6 * 16 - 3) {}

  /// The difference of the sums to those of the elements; "" if there is none.
  std::string Differ() {
    std::vector<float> sums(kRows * kColumns);
    std::memcpy(sums.data(), params().a + kPlaceOfRingSums, sums.size() * sizeof(float));
    for (int i = 0; i < kRows * kColumns; ++i) {
      const int row = i / kColumns, column = i % kColumns;
      int want = 0;
      for (int k = 0; k < depth_ && row < kHasRows && column < kHasColumns; ++k)
        want += Element(row, k, 1) * Element(column, k, 2);
      if (sums[i] != static_cast<float>(want))
        return absl::StrCat("sum ", i, " is ", sums[i], ": want ", want);
    }
    return "";
  }

 private:
  static constexpr int kHasRows = kRows - 11, kHasColumns = kColumns - 5;

  static const std::string& TheImage() {
    static const auto* image = new std::string(SimtImage(RingKernels().c_str()));
    return *image;
  }
  /// An operand and its map. What lies between rows is no part of it.
  void Fill(int map, int place, int lines, bool along_k, int salt) {
    constexpr int kApart = 8;  // elements in 16 bytes
    const int rows = along_k ? lines : depth_, columns = along_k ? depth_ : lines,
              row_elements = (columns + 2 * kApart) / kApart * kApart;
    auto* const halves = reinterpret_cast<uint16_t*>(params().a + place);
    for (int i = 0; i < rows * row_elements; ++i) {
      const int row = i / row_elements, column = i % row_elements;
      halves[i] = BF16FromF32(column >= columns ? 99
                              : along_k         ? static_cast<float>(Element(row, column, salt))
                                                : static_cast<float>(Element(column, row, salt)));
    }
    SetMap(map, {.base = halves,
                 .columns = static_cast<unsigned>(columns),
                 .rows = static_cast<unsigned>(rows),
                 .row_bytes = static_cast<unsigned>(row_elements) * sizeof(uint16_t),
                 .box_columns = 64,
                 .box_rows = static_cast<unsigned>(!along_k   ? 16
                                                   : map == 0 ? kRows
                                                              : kColumns),
                 .element_bytes = sizeof(uint16_t)});
  }

  const int depth_;
};

TEST(SimtRings, MultiplyWhatTensorLoadsBring) {
  for (const SimtOptions& options : SimtInterleavings()) {
    Lab along_k(options, true, 3 * 64 - 7);
    EXPECT_EQ(along_k.Run("along_k", 1, 384), "");
    EXPECT_EQ(along_k.Differ(), "");
    for (const char* kernel :
         {"along_lines", "waits_for_one", "fills_in_a_warp", "stores_before"}) {
      Lab lab(options);
      EXPECT_EQ(lab.Run(kernel, 1, 384), "") << kernel;
      EXPECT_EQ(lab.Differ(), "") << kernel;
    }
  }
}

TEST(SimtRings, FindMistakes) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"wrong_parity",
       "never written: wrong_parity .* shared memory|data race: wrong_parity|"
       "deadlock: .* misses"},
      {"no_wait_for_full",
       "never written: no_wait_for_full|data race: no_wait_for_full .* a copy, "
       "not awaited yet"},
      {"no_wait_for_empty",
       "data race: no_wait_for_empty|bad barrier: no_wait_for_empty .* all 1 arrivals of whose "
       "phase"},
      {"no_arrive", "deadlock: .* of a barrier to end, which misses [17] arrivals and 0 bytes"},
      {"early_arrive",
       "data race: early_arrive .* thread 256 writes .*(a product, not awaited yet, of|;) rank 0 "
       "block 0 of early_arrive .* read byte"},
      {"one_warp_arrives", "data race: one_warp_arrives .* thread 256 writes .*"},
      {"too_few_bytes",
       "data race: too_few_bytes|never written: too_few_bytes|deadlock: .* misses "
       "[01] arrivals and -?[0-9]+ bytes|bad barrier"},
      {"too_many_bytes", "deadlock: .* misses 0 arrivals and 128 bytes"},
      {"off_pattern",
       "misaligned: off_pattern .* loads a box to 128 bytes behind a multiple of 1024"},
      {"no_map", "bad tensor map: no_map .* loads a box by bytes that are no map"},
      {"no_barrier_fence",
       "data race: no_barrier_fence .* no fence of barriers or proxies is between"},
      {"stores_before_without_fence",
       "data race: stores_before_without_fence .* copies to .* in bulk; .* was there before, and "
       "no "
       "fence of proxies is between"},
      {"one_load_less", "deadlock: .* misses 0 arrivals and 2048 bytes"},
      {"same_stage",
       "data race: same_stage .* thread 256 writes .*(a product, not awaited yet, of|;) rank 0 "
       "block 0 of same_stage .* read byte"}};
  for (const SimtOptions& options : SimtInterleavings()) {
    for (const auto& [kernel, found] : mistakes)
      EXPECT_THAT(Lab(options).Run(kernel, 1, 384), ContainsRegex(found)) << kernel;
  }
}

TEST(SimtRings, BoxesThatNoTensorLoadBringsAreRefused) {
  const SimtOptions options = SimtOptions::Of(1);
  const auto with = [&](auto&& change) {
    Lab lab(options);
    SimtTensorMap map;
    std::memcpy(&map, &lab.params().maps[0], sizeof map);
    change(map);
    lab.SetMap(0, map);
    return lab.Run("along_lines", 1, 384);
  };
  EXPECT_THAT(with([](SimtTensorMap& map) { map.box_columns = 32; }),
              ContainsRegex("bad tensor map: .* with rows of 64 bytes: want 128"));
  EXPECT_THAT(with([](SimtTensorMap& map) { map.row_bytes += 2; }),
              ContainsRegex("bad tensor map: .* whose rows are not all at multiples of 16"));
  EXPECT_THAT(with([](SimtTensorMap& map) {
                map.base = static_cast<const char*>(map.base) + kWords * 4 - 1024;
              }),
              ContainsRegex("out of bounds: .* reads .* bytes"));
}

}  // namespace
}  // namespace coconet
