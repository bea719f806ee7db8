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
    for (const OperandPiece& piece :
         PiecesOf({start + 32 * step, 0, 1024, false, SimtElement::kF16}, 64)) {
      const int row = piece.line % 8, column = 2 * step + piece.k / 8;
      EXPECT_EQ(piece.at - start, piece.line / 8 * 1024 + row * 128 + (column ^ row) * 16);
    }
  }
}

TEST(Operands, PiecesAlongLinesLieInRowsOfK) {
  const std::vector<Pattern> memory(16);
  const char* const start = reinterpret_cast<const char*>(memory.data());
  for (const OperandPiece& piece : PiecesOf({start, 4096, 1024, true, SimtElement::kF16}, 128)) {
    const int row = piece.k % 8, column = piece.line % 64 / 8;
    EXPECT_EQ(piece.at - start,
              piece.line / 64 * 4096 + piece.k / 8 * 1024 + row * 128 + (column ^ row) * 16);
  }
}

/// Stores a small integer, which all types hold.
void Store(SimtElement element, float value, char* at) {
  const auto put = [&](auto bits) { std::memcpy(at, &bits, sizeof bits); };
  switch (element) {
    case SimtElement::kF16:
      return put(F16FromF32(value));
    case SimtElement::kBF16:
      return put(BF16FromF32(value));
    case SimtElement::kF8E4M3:
      return put(F8E4M3FromF32(value));
    case SimtElement::kF8E5M2:
      return put(F8E5M2FromF32(value));
  }
}

TEST(Operands, AreReadByKAndLine) {
  const auto value_at = [](int k, int line) { return static_cast<float>((3 * line + k) % 8); };
  for (const SimtElement element :
       {SimtElement::kF16, SimtElement::kBF16, SimtElement::kF8E4M3, SimtElement::kF8E5M2}) {
    for (const bool transposed : {false, true}) {
      if (transposed && BytesOf(element) == 1) continue;
      std::vector<Pattern> memory(16);
      char* const start = reinterpret_cast<char*>(memory.data());
      const SimtOperand operand = {start, 8192, 1024, transposed, element};
      const std::vector<OperandPiece> pieces = PiecesOf(operand, 128);
      for (const OperandPiece& piece : pieces) {
        for (int i = 0; i * BytesOf(element) < kPieceBytes; ++i) {
          const int line = piece.line + (transposed ? i : 0), k = piece.k + (transposed ? 0 : i);
          Store(element, value_at(k, line), start + (piece.at - start) + i * BytesOf(element));
        }
      }
      const std::vector<float> values = ReadOperand(pieces, 128, operand);
      ASSERT_EQ(values.size(), 128 * DepthOf(element));
      for (int k = 0; k < DepthOf(element); ++k) {
        for (int line = 0; line < 128; ++line) ASSERT_EQ(values[k * 128 + line], value_at(k, line));
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
  std::vector<float> a(kProductRows * 16), b(8 * 16), sums(kProductRows * 8, 1);
  a[3 * kProductRows + 60] = 2, b[3 * 8 + 5] = 3, a[4 * kProductRows + 60] = 5, b[4 * 8 + 5] = 7;
  AddProduct(a, b, 8, sums);
  EXPECT_EQ(sums[60 * 8 + 5], 1 + 6 + 35);
  EXPECT_EQ(sums[60 * 8 + 6], 1);
}

}  // namespace
}  // namespace coconet
