#include <algorithm>
#include <cstring>

#include "coconet/base/status.h"
#include "runtime/host/matmul.h"
#include "runtime/node/loops/floats8.h"
#include "runtime/node/loops/halves.h"

namespace coconet {
namespace {

// Three f32 blocks take 12 MiB at most. The library cuts them for its caches; each element is
// widened once for so many rows or columns, and each block of sums loaded and stored once for so
// many products. With 384, products of 4096 x 1024 were slower than of whole widened operands.
constexpr int64_t kMostBlock = 1024;

/// The block size that cuts `extent` into nearly equal blocks of at most kMostBlock.
int64_t BlockOf(int64_t extent) {
  const int64_t blocks = (extent + kMostBlock - 1) / kMostBlock;
  return (extent + blocks - 1) / blocks;
}

const void* At(DType dtype, const void* base, int64_t elements) {
  return static_cast<const char*>(base) + elements * static_cast<int64_t>(SizeOf(dtype));
}
void* At(DType dtype, void* base, int64_t elements) {
  return static_cast<char*>(base) + elements * static_cast<int64_t>(SizeOf(dtype));
}

/// One operand and the buffer into which its blocks are widened. A block keeps the storage order of
/// its matrix and is zero-padded at the matrix's edges.
class Operand {
 public:
  Operand(DType dtype, int64_t rows, int64_t cols, const MatrixStrides& strides,
          const std::optional<ScaleView>& scales)
      : dtype_(dtype),
        by_cols_(strides.col != 1),
        strides_(strides),
        rows_(rows),
        cols_(cols),
        scales_(scales) {}

  void Open() { block_ = Scratch<float>(BlockOf(rows_) * BlockOf(cols_)); }
  MatrixStrides block_strides() const {
    return by_cols_ ? MatrixStrides{1, BlockOf(rows_)} : MatrixStrides{BlockOf(cols_), 1};
  }
  /// The widened block whose first element is (row, col), times its scales.
  const float* Widened(const MatmulOperand& matrix, int64_t row, int64_t col) const {
    const void* first = At(dtype_, matrix.elements, row * strides_.row + col * strides_.col);
    const int64_t rows = std::min(BlockOf(rows_), rows_ - row),
                  cols = std::min(BlockOf(cols_), cols_ - col);
    if (by_cols_) {
      WidenLines(first, cols, BlockOf(cols_), rows, BlockOf(rows_), strides_.col);
    } else {
      WidenLines(first, rows, BlockOf(rows_), cols, BlockOf(cols_), strides_.row);
    }
    if (scales_.has_value()) {
      float* line = block_.data();
      for (int64_t i = 0; i < (by_cols_ ? cols : rows); ++i) {
        if (by_cols_)
          ScaleLine(matrix.scales, row, col + i, rows, line);
        else
          ScaleLine(matrix.scales, row + i, col, cols, line);
        line += by_cols_ ? BlockOf(rows_) : BlockOf(cols_);
      }
    }
    return block_.data();
  }

 private:
  void WidenLines(const void* first, int64_t lines, int64_t block_lines, int64_t length,
                  int64_t block_length, int64_t stride) const {
    float* out = block_.data();
    for (int64_t line = 0; line < lines; ++line, out += block_length) {
      const void* from = At(dtype_, first, line * stride);
      if (IsFloat8(dtype_))
        WidenFloats8(dtype_, out, from, length);
      else
        WidenHalves(dtype_, out, from, length);
      std::fill(out + length, out + block_length, 0.0f);
    }
    std::fill(out, out + (block_lines - lines) * block_length, 0.0f);
  }

  /// Multiplies a line of the block, which begins with element (row, col).
  void ScaleLine(const float* scales, int64_t row, int64_t col, int64_t length, float* line) const {
    const ScaleView& s = *scales_;
    row += s.first_row;
    col += s.first_col;
    scales += by_cols_ ? col / s.block_cols * s.col : row / s.block_rows * s.row;
    const int64_t first = by_cols_ ? row : col, stride = by_cols_ ? s.row : s.col,
                  block = by_cols_ ? s.block_rows : s.block_cols;
    for (int64_t i = 0; i < length;) {
      const int64_t number = (first + i) / block,
                    end = std::min(length, (number + 1) * block - first);
      const float scale = scales[number * stride];
      for (; i < end; ++i) line[i] *= scale;
    }
  }

  DType dtype_;
  bool by_cols_;
  MatrixStrides strides_;
  int64_t rows_, cols_;
  std::optional<ScaleView> scales_;
  Scratch<float> block_;
};

class WidenedMatmul final : public Matmul {
 public:
  explicit WidenedMatmul(const MatmulShape& shape)
      : shape_(shape),
        a_(shape.float8_a.value_or(shape.dtype), shape.m, shape.k, shape.a, shape.scales_a),
        b_(shape.float8_b.value_or(shape.dtype), shape.k, shape.n, shape.b, shape.scales_b) {}

  absl::Status Open() {
    a_.Open();
    b_.Open();
    sum_ = Scratch<float>(rows_ * cols_);
    MatmulShape block{.dtype = DType::kF32,
                      .m = rows_,
                      .n = cols_,
                      .k = depth_,
                      .a = a_.block_strides(),
                      .b = b_.block_strides(),
                      .c = {cols_, 1}};
    ASSIGN_OR_RETURN(first_, MakeMatmul(block));
    block.accumulate = true;
    ASSIGN_OR_RETURN(next_, MakeMatmul(block));
    return absl::OkStatus();
  }

  bool Run(MatmulOperand a, MatmulOperand b, void* c) override {
    for (int64_t col = 0; col < shape_.n; col += cols_) {
      for (int64_t row = 0; row < shape_.m; row += rows_) {
        if (!Sum(a, b, row, col)) return false;
        const int64_t count = std::min(cols_, shape_.n - col);
        for (int64_t i = 0; i < std::min(rows_, shape_.m - row); ++i) {
          void* const to = At(shape_.dtype, c, (row + i) * shape_.c.row + col);
          const float* const sums = sum_.data() + i * cols_;
          if (shape_.dtype == DType::kF32)
            std::memcpy(to, sums, count * sizeof(float));
          else
            NarrowHalves(shape_.dtype, to, sums, count);
        }
      }
    }
    return true;
  }

 private:
  /// Computes the block of c whose first element is (row, col). Returns false when
  /// the library fails.
  bool Sum(const MatmulOperand& a, const MatmulOperand& b, int64_t row, int64_t col) {
    for (int64_t p = 0; p < shape_.k; p += depth_) {
      Matmul& matmul = p == 0 ? *first_ : *next_;
      if (!matmul.Run(a_.Widened(a, row, p), b_.Widened(b, p, col), sum_.data())) return false;
    }
    return true;
  }

  MatmulShape shape_;
  int64_t rows_ = BlockOf(shape_.m), cols_ = BlockOf(shape_.n), depth_ = BlockOf(shape_.k);
  Operand a_, b_;
  Scratch<float> sum_;
  std::unique_ptr<Matmul> first_, next_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Matmul>> MakeWidenedMatmul(const MatmulShape& shape) {
  auto matmul = std::make_unique<WidenedMatmul>(shape);
  RETURN_IF_ERROR(matmul->Open());
  return matmul;
}

}  // namespace coconet
