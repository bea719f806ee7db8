#include "autotune/command/records.h"

#include <utility>

#include "absl/strings/match.h"
#include "autotune/session/explanation.h"

namespace coconet {

bool IsMeant(const TuningRecord& record, absl::string_view which) {
  return which == "all" || absl::StartsWith(record.key, which) ||
         ProgramOfKey(record.key_text) == which;
}

std::vector<TuningRecord> RecordsOf(TuningCache& cache, absl::string_view which) {
  std::vector<TuningRecord> records;
  for (TuningRecord& r : cache.List()) {
    if (IsMeant(r, which)) records.push_back(std::move(r));
  }
  return records;
}

}  // namespace coconet
