#include "bench/optimizers/training.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace coconet::bench {
namespace {

/// data[i] = values[i mod values.size()].
void Repeat(DType dtype, void* data, int64_t n, const std::vector<double>& values) {
  const int64_t period = std::min<int64_t>(n, static_cast<int64_t>(values.size()));
  for (int64_t i = 0; i < period; ++i) StoreElement(dtype, data, i, values[i]);
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  for (int64_t done = period; done < n; done *= 2) {
    std::memcpy(static_cast<char*>(data) + done * size, data, std::min(done, n - done) * size);
  }
}

}  // namespace

AdamStep AdamStepNumber(int64_t t, int ranks, double learning_rate) {
  const double b1 = kAdam.beta1, b2 = kAdam.beta2;
  const auto step = static_cast<double>(t);
  return {.inverse_ranks = static_cast<float>(1.0 / ranks),
          .b1 = static_cast<float>(b1),
          .one_minus_b1 = static_cast<float>(1 - b1),
          .b2 = static_cast<float>(b2),
          .one_minus_b2 = static_cast<float>(1 - b2),
          .c1 = static_cast<float>(learning_rate / (1 - std::pow(b1, step))),
          .c2 = static_cast<float>(1 / (1 - std::pow(b2, step))),
          .eps = static_cast<float>(kAdam.eps)};
}

void FillGradient(DType dtype, void* gradient, int64_t n, int rank) {
  std::vector<double> values(61);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 0.5 + static_cast<double>((i * 7 + rank * 29) % 61) / 122;
  Repeat(dtype, gradient, n, values);
}

void FillWeights(DType dtype, void* weights, int64_t n) {
  std::vector<double> values(57);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.75 + static_cast<double>(i) / 114;
  Repeat(dtype, weights, n, values);
}

void Widen(DType dtype, const void* from, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(LoadElement(dtype, from, i).real());
}

double LargestDifference(DType dtype, absl::Span<const double> a, absl::Span<const double> b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double scale = std::max({std::abs(a[i]), std::abs(b[i]), MinSubnormal(dtype)});
    const double off = std::abs(a[i] - b[i]) / scale / UnitRoundoff(dtype);
    largest = std::isnan(off) ? INFINITY : std::max(largest, off);
  }
  return largest;
}

}  // namespace coconet::bench
