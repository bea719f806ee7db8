#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "bench/embedding/embedding_case.h"
#include "bench/harness/finding.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// Collective, for processes on nodes of one rank: NodeContenders, where a rank computes the sums
/// of all samples in its columns, and sends those of its peers' samples to them. Fact: "imbalance"
/// of ColumnCut. Internal when ours differs from EmbeddingBaseline by more than roundings.
absl::StatusOr<std::vector<Finding>> MeasureEmbeddingOnNodes(Rank& rank, const EmbeddingCase& c);

}  // namespace coconet::bench
