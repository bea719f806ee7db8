#pragma once

#include <vector>

#include "autotune/command/cache/cache_flags.h"
#include "autotune/store/tuning_cache.h"

namespace coconet {

// Commands of `cache` about other caches; return the exit code.

int ExportRecords(TuningCache& cache, const std::vector<LayeredRecord>& chosen,
                  const CacheFlags& flags);
/// `import` and `merge`.
int ImportRecords(TuningCache& cache, const CacheFlags& flags);
int PrintDiff(const CacheFlags& flags);

}  // namespace coconet
