#pragma once

// The plainest loops over as many streams as a kernel loads and stores, for the instruction set
// that the including file is compiled for; see lanes.h.

#include "bench/baselines/kernels.h"
#include "bench/baselines/lanes.h"

namespace coconet::bench {
namespace {

/// Stores the sum of what it loads. Two vectors a turn, so that additions do not wait for each
/// other if nothing is stored.
template <bool kStream, int kLoads, int kStores>
float StreamOf(const PlainStream& streams, int64_t n) {
  const PlainStream s = streams;
  Lanes total[2] = {};
  for (int64_t i = 0; i + 2 * kLanes <= n; i += 2 * kLanes) {
    for (int half = 0; half < 2; ++half) {
      Lanes sum = Load<Lanes>(s.from[0] + i + half * kLanes);
      for (int k = 1; k < kLoads; ++k) sum += Load<Lanes>(s.from[k] + i + half * kLanes);
      for (int k = 0; k < kStores; ++k) StoreBy<kStream>(s.to[k] + i + half * kLanes, sum);
      if constexpr (kStores == 0) total[half] += sum;
    }
  }
  if constexpr (kStream) StreamingFence();
  float sum = 0;
  for (int i = 0; i < kLanes; ++i) sum += total[0][i] + total[1][i];
  return sum;
}

template <bool kStream>
float Stream(const PlainStream& s, int64_t n) {
  if (s.stores == 0) return StreamOf<kStream, 1, 0>(s, n);
  if (s.loads == 1) return StreamOf<kStream, 1, 1>(s, n);
  return StreamOf<kStream, 4, 3>(s, n);
}

}  // namespace
}  // namespace coconet::bench
