#pragma once

#include <cstdint>

#include "jit/config/config.h"

namespace coconet {

/// The rates of a rank of a machine, to the precision that the order of trials needs.
struct PriorRates {
  double launch_us = 0;                          // of a kernel or a product
  double library_us = 0;                         // of a library's collective, besides its bytes
  double meeting_us = 0;                         // of ranks that wait for each other in a kernel
  double bytes_per_us = 0;                       // of memory, for one rank
  double link_bytes_per_us = 0;                  // that a library's collective sends, for one rank
  double flops_per_us = 0, flops_per_us_16 = 0;  // of products in f32, and in f16 and bf16
  double operations_per_us = 0;                  // elementwise ones, of all lanes of a block
  /// Variants that are expected to take more than `hopeless` times as long as the best are not
  /// tried. 0: all are tried, because expected times were not compared with measurements.
  double hopeless = 0;

  // GPUs.
  int multiprocessors = 0;           // that a rank has; 0: ranks are the host's
  double latency_us = 0;             // of a load from memory
  int registers = 0;                 // of a multiprocessor
  int threads = 0;                   // that a multiprocessor holds
  int64_t bulk_bytes_in_flight = 0;  // of a block that copies in bulk

  // Hosts.
  double cached_bytes_per_us = 0;  // of a cache
  int64_t cache_bytes = 0;         // that the ranks of a node share
  double wake_us = 0;              // of a further thread of a kernel
};

/// The rates of the ranks of `space`. GPUs: documented numbers of compute capability 9.0. Hosts:
/// round numbers for current server processors; the cache's size is that of this machine.
PriorRates PriorRatesFor(const ConfigSpace& space);

}  // namespace coconet
