#pragma once

// Loops of LAMB for the instruction set that the including file is compiled for; see lanes.h.

#include "bench/baselines/kernels.h"
#include "bench/baselines/lanes.h"

namespace coconet::bench {
namespace {

/// The step's direction, from updated m and v: Adam's, plus the decay.
template <class T>
inline T Direction(const LambStep& s, T w, T m, T v) {
  return m * s.adam.c1 / (Sqrt(v * s.adam.c2) + s.adam.eps) + w * s.decay;
}

template <class T>
struct Moments {
  T m, v;
};
template <class T>
inline Moments<T> NewMoments(const AdamStep& s, T sum, T m, T v) {
  const T g = sum * s.inverse_ranks;
  return {m * s.b1 + g * s.one_minus_b1, v * s.b2 + g * g * s.one_minus_b2};
}

inline double SumOf(Lanes x) {
  double sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += x[i];
  return sum;
}

/// Updates the moments and returns the squares of the norms; with kStore the direction replaces the
/// gradient. Squares are summed in f32 over a piece, and in f64 over pieces.
template <bool kStore>
LambSquares LambMoments(const LambStep& step, float* sum, const float* p, float* m, float* v,
                        int64_t n) {
  constexpr int64_t kPiece = 4096;
  const LambStep s = step;  // a copy, which no store can change
  LambSquares squares = {0, 0};
  int64_t i = 0;
  while (i + kLanes <= n) {
    const int64_t end = n - i < kPiece ? n : i + kPiece;
    Lanes weights = {}, direction = {};
    for (; i + kLanes <= end; i += kLanes) {
      const Lanes w = Load<Lanes>(p + i);
      const Moments<Lanes> to =
          NewMoments(s.adam, Load<Lanes>(sum + i), Load<Lanes>(m + i), Load<Lanes>(v + i));
      const Lanes r = Direction(s, w, to.m, to.v);
      weights += w * w;
      direction += r * r;
      Store(m + i, to.m);
      Store(v + i, to.v);
      if constexpr (kStore) Store(sum + i, r);
    }
    squares.weights += SumOf(weights);
    squares.direction += SumOf(direction);
  }
  for (; i < n; ++i) {
    const Moments<float> to = NewMoments(s.adam, sum[i], m[i], v[i]);
    const float r = Direction(s, p[i], to.m, to.v);
    squares.weights += static_cast<double>(p[i]) * p[i];
    squares.direction += static_cast<double>(r) * r;
    m[i] = to.m;
    v[i] = to.v;
    if constexpr (kStore) sum[i] = r;
  }
  return squares;
}

/// p -= scale * direction, which is `stored` or recomputed from the moments.
template <bool kStored, bool kStreaming>
void LambApply(const LambStep& step, float scale, const float* stored, float* p, const float* m,
               const float* v, int64_t n) {
  const LambStep s = step;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Lanes w = Load<Lanes>(p + i);
    Lanes r;
    if constexpr (kStored)
      r = Load<Lanes>(stored + i);
    else
      r = Direction(s, w, Load<Lanes>(m + i), Load<Lanes>(v + i));
    if constexpr (kStreaming)
      StoreStreaming(p + i, w - r * scale);
    else
      Store(p + i, w - r * scale);
  }
  for (; i < n; ++i) p[i] -= scale * (kStored ? stored[i] : Direction(s, p[i], m[i], v[i]));
  if constexpr (kStreaming) StreamingFence();
}

/// Copies past the caches; `to` must be aligned to a vector.
void CopyStreaming(const float* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) StoreStreaming(to + i, Load<Lanes>(from + i));
  for (; i < n; ++i) to[i] = from[i];
  StreamingFence();
}

}  // namespace
}  // namespace coconet::bench
