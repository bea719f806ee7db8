#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/finding.h"
#include "coconet/base/dtype.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// Bags of rows of embedding tables on the ranks that have them, and an AllToAll of their sums: the
/// workload dlrm_embedding.
struct EmbeddingCase {
  DType dtype = DType::kF32;      // of the rows: kF32 or kBF16
  std::vector<int64_t> lookups;   // a sample, by table
  int64_t rows = 0, columns = 0;  // of each table
  int64_t samples = 0;            // of all ranks together
  double zipf = 0;                // exponent of the indices' distribution; 0: uniform
  double seconds = 5;             // of the rounds
  double budget_s = 20;           // of tuning one contender
};

/// Collective, for processes. Findings by side:
///   ours      pooling and AllToAll, tuned
///   pooling   ours, without the AllToAll, into memory of its own: the bound
///   baseline  a careful user's: pools into a send buffer, MPI_Alltoallv, unpacks. The columns are
///             cut as ours are
///   loop      the baseline's pooling alone
/// Facts "variant" by side; and "lookups", those of the busiest rank over the mean. Internal when
/// ours and the baseline differ by more than roundings.
absl::StatusOr<std::vector<Finding>> MeasureEmbedding(Rank& rank, const EmbeddingCase& c);

/// A worker's arguments, and the case that this program's flags give; nullopt: not a worker.
std::vector<std::string> Arguments(const EmbeddingCase& c);
absl::StatusOr<std::optional<EmbeddingCase>> EmbeddingCaseFromFlags();
/// A worker's main function; writes its findings where RunWorker expects them.
absl::Status WorkOn(const EmbeddingCase& c);

}  // namespace coconet::bench
