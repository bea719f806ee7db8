#include "runtime/simt/products/operands.h"

#include <cstddef>
#include <cstring>

#include "coconet/base/dtype.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int kRows = 8, kRowBytes = 128;  // of a pattern of swizzles

float ValueOf(SimtElement element, const char* at) {
  const auto bits = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (element) {
    case SimtElement::kF16:
      return F32FromF16(bits(uint16_t{}));
    case SimtElement::kBF16:
      return F32FromBF16(bits(uint16_t{}));
    case SimtElement::kF8E4M3:
      return F32FromF8E4M3(bits(uint8_t{}));
    case SimtElement::kF8E5M2:
      return F32FromF8E5M2(bits(uint8_t{}));
  }
  CC_CHECK(false);
}

}  // namespace

int BytesOf(SimtElement element) {
  return element == SimtElement::kF16 || element == SimtElement::kBF16 ? 2 : 1;
}

int DepthOf(SimtElement element) { return kDepthBytes / BytesOf(element); }

std::vector<OperandPiece> PiecesOf(const SimtOperand& operand, int lines) {
  const auto* const start = static_cast<const char*>(operand.start);
  const size_t leading = operand.leading, stride = operand.stride;
  const int bytes = BytesOf(operand.element), depth = DepthOf(operand.element),
            in_piece = kPieceBytes / bytes, in_row = kRowBytes / bytes;
  std::vector<OperandPiece> pieces;
  pieces.reserve(static_cast<size_t>(lines) * depth / in_piece);
  if (operand.transposed) {
    for (int k = 0; k < depth; ++k) {
      for (int line = 0; line < lines; line += in_piece) {
        const size_t offset = line / in_row * leading + k / kRows * stride + k % kRows * kRowBytes +
                              line % in_row * bytes;
        pieces.push_back({Swizzled(start + offset), line, k});
      }
    }
  } else {
    for (int line = 0; line < lines; ++line) {
      for (int k = 0; k < depth; k += in_piece) {
        const size_t offset = line / kRows * stride + line % kRows * kRowBytes + k * bytes;
        pieces.push_back({Swizzled(start + offset), line, k});
      }
    }
  }
  return pieces;
}

std::vector<float> ReadOperand(const std::vector<OperandPiece>& pieces, int lines,
                               const SimtOperand& operand) {
  const int bytes = BytesOf(operand.element);
  std::vector<float> values(static_cast<size_t>(lines) * DepthOf(operand.element));
  for (const OperandPiece& piece : pieces) {
    float* const first = values.data() + piece.k * lines + piece.line;
    for (int i = 0; i * bytes < kPieceBytes; ++i)
      first[operand.transposed ? i : i * lines] = ValueOf(operand.element, piece.at + i * bytes);
  }
  return values;
}

void AddProduct(const std::vector<float>& a, const std::vector<float>& b, int columns,
                std::vector<float>& sums) {
  const auto depth = static_cast<int>(a.size()) / kProductRows;
  for (int row = 0; row < kProductRows; ++row) {
    float* const to = sums.data() + row * columns;
    for (int k = 0; k < depth; ++k) {
      const float factor = a[k * kProductRows + row];
      const float* const from = b.data() + k * columns;
      for (int column = 0; column < columns; ++column) to[column] += factor * from[column];
    }
  }
}

}  // namespace coconet
