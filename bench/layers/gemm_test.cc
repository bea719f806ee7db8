#include "bench/baselines/gemm.h"

#include <vector>

#include "bench/layers/gemm_speed.h"
#include "gtest/gtest.h"
#include "runtime/world.h"

namespace coconet::bench {
namespace {

TEST(OneDnnGemm, MultipliesWithTheWeightsItWasGivenLast) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (auto weights : {OneDnnGemm::Weights::kAsTheyLie, OneDnnGemm::Weights::kPacked}) {
      const GemmSize size{.m = 3, .n = 5, .k = 7};
      const auto gemm = OneDnnGemm::Make(dtype, size, weights);
      ASSERT_TRUE(gemm.ok()) << gemm.status();
      EXPECT_TRUE((*gemm)->multiplies() == dtype || (*gemm)->multiplies() == DType::kF32);
      std::vector<char> a(21 * 4), b(35 * 4), c(15 * 4);
      for (int64_t i = 0; i < 21; ++i)
        StoreElement(dtype, a.data(), i, static_cast<double>(i / 7 + 1));
      for (int value : {1, 2}) {
        for (int64_t i = 0; i < 35; ++i)
          StoreElement(dtype, b.data(), i, static_cast<double>(i % 5 * value));
        EXPECT_EQ((*gemm)->SetWeights(b.data()), absl::OkStatus());
        EXPECT_EQ((*gemm)->Run(a.data(), c.data()), absl::OkStatus());
        for (int64_t i = 0; i < 15; ++i) {
          EXPECT_EQ(LoadElement(dtype, c.data(), i),
                    static_cast<double>(7 * (i / 5 + 1) * (i % 5) * value));
        }
      }
    }
  }
}

TEST(OneDnnGemm, StoresAProductOfHalvesInF32) {
  for (auto weights : {OneDnnGemm::Weights::kAsTheyLie, OneDnnGemm::Weights::kPacked}) {
    const auto gemm =
        OneDnnGemm::Make(DType::kBF16, {.m = 1, .n = 2, .k = 2}, weights, DType::kF32);
    ASSERT_TRUE(gemm.ok()) << gemm.status();
    uint16_t a[2], b[4];
    for (int i = 0; i < 2; ++i) StoreElement(DType::kBF16, a, i, i == 0 ? 256 : 1);
    for (int i = 0; i < 4; ++i) StoreElement(DType::kBF16, b, i, i + 1);
    float c[2];
    EXPECT_EQ((*gemm)->SetWeights(b), absl::OkStatus());
    EXPECT_EQ((*gemm)->Run(a, c), absl::OkStatus());
    EXPECT_EQ(c[0], 259);  // which bf16 rounds to 260
    EXPECT_EQ(c[1], 516);
  }
}

TEST(OneDnnGemm, RefusesTypesThatAreNoneOfGemms) {
  EXPECT_EQ(OneDnnGemm::Make(DType::kI32, {1, 1, 1}, OneDnnGemm::Weights::kPacked).status(),
            absl::InvalidArgumentError("OneDnnGemm: want f32, f16 or bf16, have i32"));
  EXPECT_EQ(
      OneDnnGemm::Make(DType::kF32, {1, 1, 1}, OneDnnGemm::Weights::kPacked, DType::kF16).status(),
      absl::InvalidArgumentError(
          "OneDnnGemm: want a result of the operands' type or of f32, have f16"));
}

TEST(MeasureGemm, HasASpeedForEachWay) {
  const absl::Status status = RunWorld({.ranks = 2}, [](Rank& rank) -> absl::Status {
    const absl::StatusOr<Row> row = MeasureGemm(rank, DType::kF32, {.m = 17, .n = 33, .k = 65},
                                                {.seconds = 0, .min_rounds = 2});
    if (!row.ok()) return row.status();
    for (const char* way : {"ours", "plain", "packed", "packing"})
      EXPECT_GT(row->Number(way), 0) << way;
    EXPECT_EQ(row->Number("k"), 65);
    EXPECT_EQ(std::get<std::string>(row->Get("onednn_dtype")), "f32");
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(MeasurePieces, HasATimeForEachCutAndWay) {
  const absl::Status status = RunWorld({.ranks = 2}, [](Rank& rank) -> absl::Status {
    for (const auto& [dtype, ways] : {std::pair{DType::kF32, 3}, std::pair{DType::kBF16, 2}}) {
      const absl::StatusOr<std::vector<Row>> rows =
          MeasurePieces(rank, dtype, {.m = 17, .n = 33, .k = 65}, {.seconds = 0, .min_rounds = 2});
      if (!rows.ok()) return rows.status();
      EXPECT_EQ(rows->size(), static_cast<size_t>(5 * ways));
      for (const Row& row : *rows) {
        EXPECT_GT(row.Number("us"), 0);
        EXPECT_GT(row.Number("over_whole"), 0);
      }
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace coconet::bench
