#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "bench/embedding/embedding_case.h"
#include "bench/harness/finding.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// For one process, whose rank is one thread. Findings by side:
///   ours     the program without its AllToAll, tuned
///   loop     a careful user's
///   fbgemm   FBGEMM's kernel, where it is
/// Facts "variant", and "fbgemm": "present", or why it is absent. Internal when the sides differ by
/// more than roundings.
absl::StatusOr<std::vector<Finding>> MeasurePooling(Rank& rank, const EmbeddingCase& c);

}  // namespace coconet::bench
