#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coconet/base/dtype.h"
#include "runtime/plan.h"

namespace coconet {

/// Matrix products that every backend must compute.

/// A product of dense matrices. Of f8e4m3 or f8e5m2, a is of that and b of the other, and c in f32.
GemmStep DenseGemm(DType dtype, int64_t batch, int64_t m, int64_t n, int64_t k,
                   bool transpose_a = false, bool transpose_b = false);

struct GemmCase {
  GemmStep step;
  int rank = 0;  // in its stage
};
/// With all that is needed to repeat it.
std::string Text(const GemmCase& c);

std::vector<GemmCase> OddSizesAndTransposes(DType dtype);
std::vector<GemmCase> BatchesStridesOffsetsAndThreads(DType dtype);
std::vector<GemmCase> BatchesOfTransposedColumns(DType dtype);
std::vector<GemmCase> BatchesSideBySide(DType dtype);
std::vector<GemmCase> SlicesOfEachRank(DType dtype);
/// Products of 8-bit floats with scales of blocks, in parts of which a matrix may begin; some are
/// larger than what hosts widen at once.
std::vector<GemmCase> ScalesOfBlocks(DType dtype);
std::vector<GemmCase> NothingToSumOrNothing(DType dtype);

/// The three buffers of a step, and two of scales: random values, equal for all cases of a type; c
/// is poisoned and has a guard behind it.
class GemmOperands {
 public:
  explicit GemmOperands(const GemmStep& step);

  const void* a() const { return a_.data(); }
  const void* b() const { return b_.data(); }
  void* c() { return c_.data(); }
  const float* scales_a() const;
  const float* scales_b() const;

  /// What is wrong with c after the product; "" if it is near the sum in double and the bytes
  /// around it are untouched.
  std::string Wrong(const GemmCase& c) const;

 private:
  double Bound(int64_t roundings, double sum, double magnitude) const;

  DType dtype_, of_a_, of_b_;
  int64_t size_;
  const std::vector<unsigned char>& a_;
  const std::vector<unsigned char>& b_;
  std::vector<unsigned char> c_;
};

}  // namespace coconet
