#pragma once

#include "absl/strings/string_view.h"
#include "bench/embedding/embedding_case.h"
#include "bench/harness/machine.h"

namespace coconet::bench {

/// A row of `fused`.
RowTask EmbeddingTask(absl::string_view name, const EmbeddingCase& c, int ranks);

}  // namespace coconet::bench
