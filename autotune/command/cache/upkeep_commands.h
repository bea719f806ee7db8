#pragma once

#include <vector>

#include "autotune/command/cache/cache_flags.h"
#include "autotune/store/tuning_cache.h"

namespace coconet {

// Commands of `cache` that keep its size and choose what runs; return the exit code.

int PrintStatistics(TuningCache& cache, const CacheFlags& flags);
int PruneCache(TuningCache& cache, const CacheFlags& flags);
/// `pin` and `unpin`.
int PinRecord(TuningCache& cache, const std::vector<LayeredRecord>& chosen,
              const CacheFlags& flags);

}  // namespace coconet
