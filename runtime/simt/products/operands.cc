#include "runtime/simt/products/operands.h"

#include <cstddef>
#include <cstring>

#include "coconet/base/dtype.h"

namespace coconet {
namespace {

constexpr int kRows = 8, kRowBytes = 128, kRowHalves = 64;  // of a pattern of swizzles

}  // namespace

std::vector<OperandPiece> PiecesOf(const SimtOperand& operand, int lines) {
  const auto* const start = static_cast<const char*>(operand.start);
  const size_t leading = operand.leading, stride = operand.stride;
  std::vector<OperandPiece> pieces;
  pieces.reserve(static_cast<size_t>(lines) * kProductDepth / kPieceHalves);
  if (operand.transposed) {
    for (int k = 0; k < kProductDepth; ++k) {
      for (int line = 0; line < lines; line += kPieceHalves) {
        const size_t offset = line / kRowHalves * leading + k / kRows * stride +
                              k % kRows * kRowBytes + line % kRowHalves * sizeof(uint16_t);
        pieces.push_back({Swizzled(start + offset), line, k});
      }
    }
  } else {
    for (int line = 0; line < lines; ++line) {
      for (int k = 0; k < kProductDepth; k += kPieceHalves) {
        const size_t offset =
            line / kRows * stride + line % kRows * kRowBytes + k * sizeof(uint16_t);
        pieces.push_back({Swizzled(start + offset), line, k});
      }
    }
  }
  return pieces;
}

std::vector<float> ReadOperand(const std::vector<OperandPiece>& pieces, int lines, bool transposed,
                               bool bf16) {
  std::vector<float> values(static_cast<size_t>(lines) * kProductDepth);
  for (const OperandPiece& piece : pieces) {
    uint16_t halves[kPieceHalves];
    std::memcpy(halves, piece.at, sizeof halves);
    float* const first = values.data() + piece.k * lines + piece.line;
    for (int i = 0; i < kPieceHalves; ++i)
      first[transposed ? i : i * lines] = bf16 ? F32FromBF16(halves[i]) : F32FromF16(halves[i]);
  }
  return values;
}

void AddProduct(const std::vector<float>& a, const std::vector<float>& b, int columns,
                std::vector<float>& sums) {
  for (int row = 0; row < kProductRows; ++row) {
    float* const to = sums.data() + row * columns;
    for (int k = 0; k < kProductDepth; ++k) {
      const float factor = a[k * kProductRows + row];
      const float* const from = b.data() + k * columns;
      for (int column = 0; column < columns; ++column) to[column] += factor * from[column];
    }
  }
}

}  // namespace coconet
