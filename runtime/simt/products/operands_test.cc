#include "runtime/simt/products/operands.h"

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "coconet/base/dtype.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

struct alignas(1024) Pattern {
  uint16_t halves[512];
};

// PTX ISA, "Shared Memory Matrix Layout", with swizzles of 128 bytes.
TEST(Operands, PiecesAlongKLieInRowsOfLines) {
  const std::vector<Pattern> memory(8);
  const char* const start = reinterpret_cast<const char*>(memory.data());
  for (int step = 0; step < 4; ++step) {
    for (const OperandPiece& piece : PiecesOf({start + 32 * step, 0, 1024, false}, 64)) {
      const int row = piece.line % 8, column = 2 * step + piece.k / 8;
      EXPECT_EQ(piece.at - start, piece.line / 8 * 1024 + row * 128 + (column ^ row) * 16);
    }
  }
}

TEST(Operands, PiecesAlongLinesLieInRowsOfK) {
  const std::vector<Pattern> memory(16);
  const char* const start = reinterpret_cast<const char*>(memory.data());
  for (const OperandPiece& piece : PiecesOf({start, 4096, 1024, true}, 128)) {
    const int row = piece.k % 8, column = piece.line % 64 / 8;
    EXPECT_EQ(piece.at - start,
              piece.line / 64 * 4096 + piece.k / 8 * 1024 + row * 128 + (column ^ row) * 16);
  }
}

TEST(Operands, AreReadByKAndLine) {
  for (const bool transposed : {false, true}) {
    for (const bool bf16 : {false, true}) {
      std::vector<Pattern> memory(16);
      char* const start = reinterpret_cast<char*>(memory.data());
      const std::vector<OperandPiece> pieces = PiecesOf({start, 8192, 1024, transposed}, 128);
      for (const OperandPiece& piece : pieces) {
        for (int i = 0; i < kPieceHalves; ++i) {
          const int line = piece.line + (transposed ? i : 0), k = piece.k + (transposed ? 0 : i);
          const auto value = static_cast<float>(16 * (line % 16) + k);
          const uint16_t half = bf16 ? BF16FromF32(value) : F16FromF32(value);
          std::memcpy(start + (piece.at - start) + i * sizeof half, &half, sizeof half);
        }
      }
      const std::vector<float> values = ReadOperand(pieces, 128, transposed, bf16);
      for (int k = 0; k < kProductDepth; ++k) {
        for (int line = 0; line < 128; ++line)
          ASSERT_EQ(values[k * 128 + line], static_cast<float>(16 * (line % 16) + k));
      }
    }
  }
}

TEST(Operands, ThreadsOfAWarpGroupHaveEachSumOnce) {
  constexpr int kSums = 32, kColumns = 2 * kSums;
  std::set<int> places;
  for (int thread = 0; thread < 128; ++thread) {
    for (int i = 0; i < kSums; ++i) places.insert(PlaceOfSum(thread, i, kColumns));
  }
  EXPECT_EQ(places.size(), size_t{128} * kSums);
  EXPECT_EQ(*places.rbegin(), 128 * kSums - 1);
  // PTX ISA, the fragment of wgmma's D: thread 37 is lane 5 of warp 1.
  EXPECT_EQ(PlaceOfSum(37, 7, kColumns), (16 + 5 / 4 + 8) * kColumns + 8 + 5 % 4 * 2 + 1);
}

TEST(Operands, ProductsAreAdded) {
  std::vector<float> a(kProductRows * kProductDepth), b(8 * kProductDepth),
      sums(kProductRows * 8, 1);
  a[3 * kProductRows + 60] = 2, b[3 * 8 + 5] = 3, a[4 * kProductRows + 60] = 5, b[4 * 8 + 5] = 7;
  AddProduct(a, b, 8, sums);
  EXPECT_EQ(sums[60 * 8 + 5], 1 + 6 + 35);
  EXPECT_EQ(sums[60 * 8 + 6], 1);
}

}  // namespace
}  // namespace coconet
