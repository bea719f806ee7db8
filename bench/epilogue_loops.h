#ifndef COCONET_BENCH_EPILOGUE_LOOPS_H_
#define COCONET_BENCH_EPILOGUE_LOOPS_H_

// The loops of an epilogue as a careful user writes them: for the compiler to vectorise. Included where an instruction set is known, as lanes.h.

#include <stdint.h>

#include "bench/kernels.h"

namespace coconet::bench {
namespace {

inline float FromBf16(uint16_t bits) { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }
/// To the nearest, ties to even; of numbers.
inline uint16_t ToBf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float ElementOf(const float* p, int64_t i) { return p[i]; }
inline float ElementOf(const uint16_t* p, int64_t i) { return FromBf16(p[i]); }
inline void SetElement(float* p, int64_t i, float value) { p[i] = value; }
inline void SetElement(uint16_t* p, int64_t i, float value) { p[i] = ToBf16(value); }

/// Philox4x32-10 for kBlocks counters: four words each, in order (Salmon et al., SC'11).
constexpr int kBlocks = 16;
inline void RandomWords(uint64_t block, uint64_t stream, uint64_t seed, uint32_t* words) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    c0[i] = static_cast<uint32_t>(block + i);
    c1[i] = static_cast<uint32_t>((block + i) >> 32);
    c2[i] = static_cast<uint32_t>(stream);
    c3[i] = static_cast<uint32_t>(stream >> 32);
  }
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kBlocks; ++i) {
      const uint64_t a = uint64_t{0xD2511F53} * c0[i], b = uint64_t{0xCD9E8D57} * c2[i];
      c0[i] = static_cast<uint32_t>(b >> 32) ^ c1[i] ^ key0;
      c1[i] = static_cast<uint32_t>(b);
      c2[i] = static_cast<uint32_t>(a >> 32) ^ c3[i] ^ key1;
      c3[i] = static_cast<uint32_t>(a);
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  for (int i = 0; i < kBlocks; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

/// y = dropout(z + b) + r, rows of `columns` elements, a multiple of kEpilogueColumns.
template <class Sum, class T>
void Epilogue(const EpilogueLoop& loop) {
  const auto *z = static_cast<const Sum*>(loop.z);
  const auto *b = static_cast<const T*>(loop.b), *r = static_cast<const T*>(loop.r);
  auto* y = static_cast<T*>(loop.y);
  for (int64_t row = 0; row < loop.rows; ++row) {
    for (int64_t column = 0; column < loop.columns; column += kEpilogueColumns) {
      const int64_t at = row * loop.columns + column;
      uint32_t words[kEpilogueColumns];
      RandomWords(static_cast<uint64_t>(at) / 4, loop.stream, loop.seed, words);
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

}  // namespace
}  // namespace coconet::bench

#endif  // COCONET_BENCH_EPILOGUE_LOOPS_H_
