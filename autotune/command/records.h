#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "autotune/store/tuning_cache.h"

namespace coconet {

/// The records that a command line names, the newest first: by the beginning of a key, by a
/// program's name, or "all".
std::vector<TuningRecord> RecordsOf(TuningCache& cache, absl::string_view which);

}  // namespace coconet
