#pragma once

// What follows a product as a careful user writes it, for the compiler to vectorise, and the
// processor's limit. Like lanes.h, included by files that are compiled for one instruction set.

#include <math.h>
#include <stdint.h>

#include "bench/baselines/kernels.h"
#include "bench/baselines/lanes.h"

namespace coconet::bench {
namespace {

inline float FromBf16(uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}
/// Rounds to nearest, ties to even. Not for NaN.
inline uint16_t ToBf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float ElementOf(const float* p, int64_t i) { return p[i]; }
inline float ElementOf(const uint16_t* p, int64_t i) { return FromBf16(p[i]); }
inline void SetElement(float* p, int64_t i, float value) { p[i] = value; }
inline void SetElement(uint16_t* p, int64_t i, float value) { p[i] = ToBf16(value); }

/// 64-bit lanes of a register; a lane holds both halves of a product of 32-bit words.
constexpr int kCounters = 8;
typedef uint64_t WideWords __attribute__((vector_size(8 * kCounters)));

/// Philox4x32-10 for kCounters counters: four words each, in order (Salmon et al., SC'11). State
/// words are in the low halves of lanes.
inline void RandomWords(uint64_t block, uint64_t stream, uint64_t seed, uint64_t* pairs) {
  constexpr uint64_t kLow = 0xffffffff;
  WideWords c0, c1 = {}, c2 = WideWords{} + (stream & kLow), c3 = WideWords{} + (stream >> 32);
  for (int i = 0; i < kCounters; ++i) c0[i] = block + i;
  c1 += c0 >> 32;
  uint64_t key0 = seed & kLow, key1 = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    const WideWords a = (c0 & kLow) * 0xD2511F53u, b = (c2 & kLow) * 0xCD9E8D57u;
    c0 = (b >> 32) ^ c1 ^ key0;
    c1 = b;
    c2 = (a >> 32) ^ c3 ^ key1;
    c3 = a;
    key0 = (key0 + 0x9E3779B9) & kLow;
    key1 = (key1 + 0xBB67AE85) & kLow;
  }
  const WideWords first = (c0 & kLow) | (c1 << 32), second = (c2 & kLow) | (c3 << 32);
  const WideWords low = __builtin_shuffle(first, second, WideWords{0, 8, 1, 9, 2, 10, 3, 11}),
                  high = __builtin_shuffle(first, second, WideWords{4, 12, 5, 13, 6, 14, 7, 15});
  __builtin_memcpy(pairs, &low, sizeof low);
  __builtin_memcpy(pairs + kCounters, &high, sizeof high);
}

/// y = dropout(z + b) + r over rows of `columns` elements, a multiple of kEpilogueColumns.
template <class Sum, class T>
void Epilogue(const EpilogueLoop& loop) {
  const auto* z = static_cast<const Sum*>(loop.z);
  const auto *b = static_cast<const T*>(loop.b), *r = static_cast<const T*>(loop.r);
  auto* y = static_cast<T*>(loop.y);
  for (int64_t row = 0; row < loop.rows; ++row) {
    for (int64_t column = 0; column < loop.columns; column += kEpilogueColumns) {
      const int64_t at = row * loop.columns + column;
      alignas(64) uint64_t pairs[kEpilogueColumns / 2];
      for (int i = 0; i < kEpilogueColumns; i += 4 * kCounters)
        RandomWords(static_cast<uint64_t>(at + i) / 4, loop.stream, loop.seed, pairs + i / 2);
      uint32_t words[kEpilogueColumns];
      __builtin_memcpy(words, pairs, sizeof words);
      for (int i = 0; i < kEpilogueColumns; ++i) {
        const float sum = ElementOf(z, at + i) + ElementOf(b, column + i);
        const float kept = words[i] >= loop.threshold ? sum * loop.scale : 0.0f;
        SetElement(y, at + i, kept + ElementOf(r, at + i));
      }
    }
  }
}

void AddBf16(const uint16_t* in, uint16_t* inout, int64_t n) {
  for (int64_t i = 0; i < n; ++i) inout[i] = ToBf16(FromBf16(in[i]) + FromBf16(inout[i]));
}

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
