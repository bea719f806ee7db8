#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/embedding/embedding_case.h"
#include "bench/harness/row.h"

namespace coconet::bench {

/// A row of `fused` whose error, if any, is in it; other errors end the benchmark.
absl::StatusOr<Row> EmbeddingRow(absl::string_view name, const EmbeddingCase& c, int ranks,
                                 const std::string& scratch);

}  // namespace coconet::bench
