#include "autotune/command/records.h"

#include <utility>

#include "absl/strings/match.h"
#include "autotune/session/explanation.h"

namespace coconet {

std::vector<TuningRecord> RecordsOf(TuningCache& cache, absl::string_view which) {
  std::vector<TuningRecord> records;
  for (TuningRecord& r : cache.List()) {
    if (which == "all" || absl::StartsWith(r.key, which) || ProgramOfKey(r.key_text) == which)
      records.push_back(std::move(r));
  }
  return records;
}

}  // namespace coconet
