#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/baselines/array.h"
#include "bench/embedding/embedding_case.h"
#include "bench/embedding/fbgemm.h"

namespace coconet::bench {

/// A careful user's step: pools into a send buffer, MPI_Alltoallv, unpacks to one row a sample.
/// The columns are cut as ours are. Pools by FBGEMM's kernel where EmbeddingCase names it, it can
/// be loaded and is faster here, else by a loop of this benchmark; by that alone for kPooling.
class EmbeddingBaseline {
 public:
  /// `sets` outlives it.
  static absl::StatusOr<std::unique_ptr<EmbeddingBaseline>> Make(const EmbeddingCase& c,
                                                                 const ColumnCut& cut,
                                                                 IndexSets& sets, int rank,
                                                                 int ranks);
  /// Takes a set of indices.
  void Take(int64_t set);
  /// Pooling alone of the indices taken; and the whole step.
  void PoolOnce();
  absl::Status RunOnce();
  /// Steps, each of the next set.
  absl::Status Pool(int64_t steps);
  absl::Status Run(int64_t steps);

  /// Sample `sample`'s sum in a column of a table; the sample is this rank's.
  float At(int table, int64_t sample, int64_t column) const;
  /// "fbgemm", "loop", or "loop; fbgemm is absent: ..."
  const std::string& pools_by() const { return pools_by_; }
  const Range& samples() const { return samples_; }
  /// By own columns.
  const std::vector<Array>& tables() const { return tables_; }
  const std::vector<Array>& indices() const { return indices_; }

 private:
  absl::Status AllocateTables();
  /// Picks what pools.
  absl::Status LoadFbgemm();
  void PoolByLoop();
  void PoolByFbgemm();

  EmbeddingCase c_;
  ColumnCut cut_;
  IndexSets* sets_ = nullptr;
  int rank_ = 0;
  std::vector<int64_t> sent_, received_;
  Range samples_;
  std::vector<Array> tables_, indices_;  // by own columns
  Array leaving_, arriving_, pooled_;
  std::optional<FbgemmBags> fbgemm_;  // none: the loop
  std::string pools_by_ = "loop";
};

}  // namespace coconet::bench
