#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "autotune/store/tuning_cache.h"

namespace coconet {

/// Whether a command line means the record: by the beginning of its key, by its program's name, or
/// by "all".
bool IsMeant(const TuningRecord& record, absl::string_view which);
/// The records that jobs use and the command line means, the newest first.
std::vector<TuningRecord> RecordsOf(TuningCache& cache, absl::string_view which);

}  // namespace coconet
