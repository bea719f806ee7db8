#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/embedding/embedding_case.h"
#include "bench/harness/finding.h"
#include "bench/harness/row.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// The arguments of a worker for RunWorker. For kExchanged its findings are by side:
///   ours         pooling and AllToAll, tuned
///   other_order  the same variant in the other order of destinations, where it has one
///   pooling      ours, without the AllToAll, into memory of its own: the bound
///   baseline     EmbeddingBaseline
///   loop         the baseline's pooling alone
/// Facts "variant" by side; "imbalance" of ColumnCut; "sets", how many; "pools_by", of the
/// baseline; "order", that of ours: "remote first" or "plain". Internal when ours and the baseline
/// differ by more than roundings.
std::vector<std::string> Arguments(const EmbeddingCase& c);

/// For one process, whose rank is one thread. Findings by side:
///   ours     the program without its AllToAll, tuned
///   loop     a careful user's
///   fbgemm   FBGEMM's kernel, where it is
/// Facts "variant", and "fbgemm": "present", or why it is absent. Internal when the sides differ by
/// more than roundings.
absl::StatusOr<std::vector<Finding>> MeasurePooling(Rank& rank, const EmbeddingCase& c);

/// Collective, for processes on nodes of one rank: NodeContenders, where a rank computes the sums
/// of all samples in its columns, and sends those of its peers' samples to them. Fact: "imbalance"
/// of ColumnCut. Internal when ours differs from EmbeddingBaseline by more than roundings.
absl::StatusOr<std::vector<Finding>> MeasureEmbeddingOnNodes(Rank& rank, const EmbeddingCase& c);

/// A row of `fused` whose error, if any, is in it; other errors end the benchmark.
absl::StatusOr<Row> EmbeddingRow(absl::string_view name, const EmbeddingCase& c, int ranks,
                                 const std::string& scratch);

}  // namespace coconet::bench
