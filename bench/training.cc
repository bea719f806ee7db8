#include "bench/training.h"

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

void FillGradient(DType dtype, void* gradient, int64_t n, int rank) {
  std::vector<double> values(61);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.5 + static_cast<double>((i * 7 + rank * 29) % 61) / 122;
  Repeat(dtype, gradient, n, values);
}

void FillWeights(DType dtype, void* weights, int64_t n) {
  std::vector<double> values(57);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.75 + static_cast<double>(i) / 114;
  Repeat(dtype, weights, n, values);
}

double LargestDifference(DType dtype, const void* a, const void* b, int64_t n) {
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double x = LoadElement(dtype, a, i), y = LoadElement(dtype, b, i);
    const double scale = std::max({std::abs(x), std::abs(y), MinSubnormal(dtype)});
    largest = std::max(largest, std::isnan(x - y) ? INFINITY : std::abs(x - y) / scale / UnitRoundoff(dtype));
  }
  return largest;
}

}  // namespace coconet::bench
