#pragma once

// Sums of rows by index as a careful user writes them. Like lanes.h, included by files that are
// compiled for one instruction set.

#include <stdint.h>

#include "bench/baselines/epilogue_loops.h"
#include "bench/baselines/kernels.h"
#include "bench/baselines/lanes.h"

namespace coconet::bench {
namespace {

inline Lanes RowLanes(const float* from) { return Load<Lanes>(from); }
inline Lanes RowLanes(const uint16_t* from) {  // bf16
  typedef uint16_t Narrow __attribute__((vector_size(2 * kLanes)));
  typedef uint32_t Wide __attribute__((vector_size(4 * kLanes)));
  return (Lanes)(__builtin_convertvector(Load<Narrow>(from), Wide) << 16);
}

/// kVectors vectors of each bag's columns from `column` on, in registers. The row 16 look-ups ahead
/// is prefetched, as in FBGEMM (GenerateEmbeddingSpMDM).
template <int kVectors, class T>
void PoolColumns(const PoolLoop& p, int64_t column) {
  constexpr int64_t kAhead = 16, kLine = 64;
  const T* const table = static_cast<const T*>(p.table) + column;
  const int64_t lookups = p.bags * p.length;
  for (int64_t bag = 0; bag < p.bags; ++bag) {
    Lanes sums[kVectors] = {};
    for (int64_t k = bag * p.length; k < (bag + 1) * p.length; ++k) {
      const T* const next = table + p.indices[k + kAhead < lookups ? k + kAhead : k] * p.columns;
      for (int64_t byte = 0; byte < kVectors * kLanes * int64_t{sizeof(T)}; byte += kLine)
        __builtin_prefetch(reinterpret_cast<const char*>(next) + byte);
      const T* const row = table + p.indices[k] * p.columns;
      for (int v = 0; v < kVectors; ++v) sums[v] += RowLanes(row + v * kLanes);
    }
    for (int v = 0; v < kVectors; ++v)
      Store(p.out + bag * p.out_stride + column + v * kLanes, sums[v]);
  }
}

template <class T>
void Pool(const PoolLoop& p) {
  int64_t column = 0;
  for (; column + 8 * kLanes <= p.columns; column += 8 * kLanes) PoolColumns<8, T>(p, column);
  for (; column + kLanes <= p.columns; column += kLanes) PoolColumns<1, T>(p, column);
  const T* const table = static_cast<const T*>(p.table);
  for (; column < p.columns; ++column) {
    for (int64_t bag = 0; bag < p.bags; ++bag) {
      float sum = 0;
      for (int64_t k = bag * p.length; k < (bag + 1) * p.length; ++k)
        sum += ElementOf(table, p.indices[k] * p.columns + column);
      p.out[bag * p.out_stride + column] = sum;
    }
  }
}

}  // namespace
}  // namespace coconet::bench
