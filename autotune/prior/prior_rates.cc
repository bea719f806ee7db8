#include "autotune/prior/prior_rates.h"

#include <unistd.h>

#include <algorithm>

namespace coconet {
namespace {

/// Multiprocessors of an H100 and an H200 (SXM), among which a rank's share is counted.
constexpr double kMultiprocessors = 132;

/// Sources: NVIDIA's data sheet of the H200 (4.8 TB/s, of which a copy reaches 4.26 here; 989
/// TFLOP/s dense in 16 bits; NVLink 450 GB/s each way); the CUDA programming guide, compute
/// capability 9.0 (registers, threads). The latency is that of a memory that is nearly full, where
/// 64 KiB in flight on each multiprocessor reach the speed of a copy (Little's law); an idle one's
/// is a third of it. A launch: between kernels of one stream.
PriorRates RatesOfGpus(const ConfigSpace& space) {
  const double share = std::min(space.multiprocessors / kMultiprocessors, 1.0);
  PriorRates rates;
  rates.launch_us = 1.5;
  rates.library_us = 15;
  rates.meeting_us = 1.5;
  rates.bytes_per_us = 4.26e6 * share;
  rates.link_bytes_per_us = 3.6e5;
  rates.flops_per_us = 4e8 * share;
  rates.flops_per_us_16 = 7e8 * share;
  rates.operations_per_us = 1e5 * space.multiprocessors;
  rates.multiprocessors = space.multiprocessors;
  rates.latency_us = 2;
  rates.registers = 65536;
  rates.threads = 2048;
  rates.bulk_bytes_in_flight = 32 << 10;
  return rates;
}

/// Round numbers for current server processors; only the order that they give matters. Measured
/// before products in kernels were counted (bench/results/cpu/2026-11-28-kept.json, two ranks on
/// two cores of a Zen 3 processor), the fastest variants were expected to take at most 1.34 times
/// the least expected time; hence `hopeless`.
PriorRates RatesOfHosts(const ConfigSpace& space) {
  constexpr int64_t kUnknownCache = int64_t{16} << 20;
  const int64_t cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const double lanes = std::max(space.vector_bytes / 4, 1);
  PriorRates rates;
  rates.launch_us = 0.5;
  rates.library_us = 3;
  rates.meeting_us = 0.5;
  rates.bytes_per_us = 1e4;
  rates.link_bytes_per_us = space.nodes > 1 ? 1e3 : 8e3;
  rates.flops_per_us = rates.flops_per_us_16 = 5e3 * lanes;
  rates.operations_per_us = 1e3 * lanes;
  rates.cached_bytes_per_us = 4e4;
  rates.cache_bytes = cache > 0 ? cache : kUnknownCache;
  rates.wake_us = 3;
  rates.hopeless = 2;
  return rates;
}

}  // namespace

PriorRates PriorRatesFor(const ConfigSpace& space) {
  return space.multiprocessors > 0 ? RatesOfGpus(space) : RatesOfHosts(space);
}

}  // namespace coconet
