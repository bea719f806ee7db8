#pragma once

// Loops of Adam and LAMB for the instruction set that the including file is compiled for; see
// lanes.h. Loops work on copies of their steps, which no store through a pointer can change.

#include "bench/baselines/kernels.h"
#include "bench/baselines/lanes.h"

namespace coconet::bench {
namespace {

/// Values of type T: a vector, or one lane for the tail.
template <class T>
struct Moments {
  T m, v;
};
template <class T>
inline Moments<T> NewMoments(const AdamStep& s, T sum, T m, T v) {
  const T g = sum * s.inverse_ranks;
  return {m * s.b1 + g * s.one_minus_b1, v * s.b2 + g * g * s.one_minus_b2};
}

/// The step's direction, from updated m and v.
template <class T>
inline T Direction(const AdamStep& s, T m, T v) {
  return m * s.c1 / (Sqrt(v * s.c2) + s.eps);
}
template <class T>
inline T Direction(const LambStep& s, T w, T m, T v) {
  return Direction(s.adam, m, v) + w * s.decay;
}

/// Updates w, m and v at i; returns the new w.
template <class T, bool kStreaming, class Sum>
inline T AdamAt(int64_t i, const AdamStep& s, const Sum* sum, float* w, float* m, float* v) {
  const Moments<T> to = NewMoments(s, LoadWide<T>(sum + i), Load<T>(m + i), Load<T>(v + i));
  const T weights = Load<T>(w + i) - Direction(s, to.m, to.v);
  StoreBy<kStreaming>(w + i, weights);
  StoreBy<kStreaming>(m + i, to.m);
  StoreBy<kStreaming>(v + i, to.v);
  return weights;
}

template <bool kStreaming>
void Adam(const AdamStep& step, const float* sum, float* p, float* m, float* v, int64_t n) {
  ForLanes(n, [=, s = step]<class T>(int64_t i) { AdamAt<T, kStreaming>(i, s, sum, p, m, v); });
  if constexpr (kStreaming) StreamingFence();
}

/// Sum: float, or uint16_t of f16.
template <class Sum>
void AdamMixed(const AdamStep& step, const Sum* sum, uint16_t* p, float* w, float* m, float* v,
               int64_t n) {
  ForLanes(n, [=, s = step]<class T>(int64_t i) {
    Store(p + i, Narrow(AdamAt<T, false>(i, s, sum, w, m, v)));
  });
}

inline double SumOf(Lanes x) {
  double sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += x[i];
  return sum;
}
inline double SumOf(float x) { return x; }

/// Updates the moments and returns the squares of the norms; with kStore the direction replaces the
/// gradient. Squares are summed in f32 over a piece, and in f64 over pieces.
template <bool kStore>
LambSquares LambMoments(const LambStep& step, float* sum, const float* p, float* m, float* v,
                        int64_t n) {
  constexpr int64_t kPiece = 4096;
  LambSquares squares = {0, 0};
  const auto update = [=, s = step]<class T>(int64_t i, T& weights, T& direction) {
    const T w = Load<T>(p + i);
    const Moments<T> to = NewMoments(s.adam, Load<T>(sum + i), Load<T>(m + i), Load<T>(v + i));
    const T r = Direction(s, w, to.m, to.v);
    weights += w * w;
    direction += r * r;
    Store(m + i, to.m);
    Store(v + i, to.v);
    if constexpr (kStore) Store(sum + i, r);
  };
  const auto add = [&]<class T>(int64_t begin, int64_t end, int64_t lanes, T weights, T direction) {
    for (int64_t i = begin; i < end; i += lanes) update(i, weights, direction);
    squares.weights += SumOf(weights);
    squares.direction += SumOf(direction);
  };
  const int64_t whole = n / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kPiece)
    add(i, whole - i < kPiece ? whole : i + kPiece, kLanes, Lanes{}, Lanes{});
  add(whole, n, 1, 0.0f, 0.0f);
  return squares;
}

/// p -= scale * direction, which is `stored` or recomputed from the moments.
template <bool kStored, bool kStreaming>
void LambApply(const LambStep& step, float scale, const float* stored, float* p, const float* m,
               const float* v, int64_t n) {
  ForLanes(n, [=, s = step]<class T>(int64_t i) {
    const T w = Load<T>(p + i);
    T r;
    if constexpr (kStored)
      r = Load<T>(stored + i);
    else
      r = Direction(s, w, Load<T>(m + i), Load<T>(v + i));
    StoreBy<kStreaming>(p + i, w - r * scale);
  });
  if constexpr (kStreaming) StreamingFence();
}

/// Copies past the caches; `to` must be aligned to a vector.
void CopyStreaming(const float* from, float* to, int64_t n) {
  ForLanes(n, [=]<class T>(int64_t i) { StoreStreaming(to + i, Load<T>(from + i)); });
  StreamingFence();
}

void WidenAll(const uint16_t* in, float* out, int64_t n) {
  ForLanes(n, [=]<class T>(int64_t i) { Store(out + i, LoadWide<T>(in + i)); });
}

void AddHalf(const uint16_t* in, uint16_t* inout, int64_t n) {
  ForLanes(n, [=]<class T>(int64_t i) {
    Store(inout + i, Narrow(LoadWide<T>(in + i) + LoadWide<T>(inout + i)));
  });
}

}  // namespace
}  // namespace coconet::bench
