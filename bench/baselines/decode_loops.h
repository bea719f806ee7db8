#pragma once

// What follows a product of few rows, as a careful user writes it, and the processor's limit. Like
// lanes.h, included by files that are compiled for one instruction set.

#include <math.h>
#include <stdint.h>

#include "bench/baselines/epilogue_loops.h"
#include "bench/baselines/kernels.h"
#include "bench/baselines/lanes.h"

namespace coconet::bench {
namespace {

/// h = z + r; y = h / sqrt(mean(h * h) + eps) * g over rows of `columns` elements, a multiple of
/// kEpilogueColumns.
template <class Sum, class T>
void Norm(const NormLoop& loop) {
  const auto* z = static_cast<const Sum*>(loop.z);
  const auto *r = static_cast<const T*>(loop.r), *g = static_cast<const T*>(loop.g);
  auto *h = static_cast<T*>(loop.h), *y = static_cast<T*>(loop.y);
  for (int64_t row = 0; row < loop.rows; ++row) {
    const int64_t begin = row * loop.columns;
    float squares[kEpilogueColumns] = {};
    for (int64_t column = begin; column < begin + loop.columns; column += kEpilogueColumns) {
      for (int i = 0; i < kEpilogueColumns; ++i) {
        SetElement(h, column + i, ElementOf(z, column + i) + ElementOf(r, column + i));
        const float x = ElementOf(h, column + i);
        squares[i] += x * x;
      }
    }
    float sum = 0;
    for (float square : squares) sum += square;
    const float scale = 1 / sqrtf(sum / static_cast<float>(loop.columns) + loop.eps);
    for (int64_t column = 0; column < loop.columns; column += kEpilogueColumns) {
      for (int i = 0; i < kEpilogueColumns; ++i) {
        SetElement(y, begin + column + i,
                   ElementOf(h, begin + column + i) * scale * ElementOf(g, column + i));
      }
    }
  }
}

/// About so many operations: x * a + b in independent vectors, which a processor with fused
/// instructions does at its peak.
float MultiplyAdds(int64_t flops) {
  constexpr int kSums = 12;
  Lanes sums[kSums];
  Lanes a = {}, b = {};
  for (int i = 0; i < kLanes; ++i) a[i] = 0.999f, b[i] = 0.001f * static_cast<float>(i);
  for (Lanes& sum : sums) sum = b;
  const int64_t turns = flops / (2 * kSums * kLanes);
  for (int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * a + b;
  }
  float all = 0;
  for (const Lanes& sum : sums) all += sum[0];
  return all;
}

}  // namespace
}  // namespace coconet::bench
