#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/embedding/embedding_case.h"
#include "bench/harness/finding.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// A worker's arguments, and the case that this program's flags give; nullopt: not a worker.
std::vector<std::string> Arguments(const EmbeddingCase& c);
absl::StatusOr<std::optional<EmbeddingCase>> EmbeddingCaseFromFlags();
/// Collective: what the case names. For kExchanged, findings by side:
///   ours         pooling and AllToAll, tuned
///   other_order  the same variant in the other order of destinations, where it has one
///   pooling      ours, without the AllToAll, into memory of its own: the bound
///   baseline     EmbeddingBaseline
///   loop         the baseline's pooling alone
/// Facts "variant" by side; "imbalance" of ColumnCut; "sets", how many; "pools_by", of the
/// baseline; "order", that of ours: "remote first" or "plain". Internal when ours and the baseline
/// differ by more than roundings.
absl::StatusOr<std::vector<Finding>> Measure(Rank& rank, const EmbeddingCase& c);
/// A worker's main function; writes its findings where RunWorker expects them.
absl::Status WorkOn(const EmbeddingCase& c);

}  // namespace coconet::bench
