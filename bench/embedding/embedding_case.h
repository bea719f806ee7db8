#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/harness/machine.h"
#include "bench/harness/tuned_contender.h"
#include "coconet/base/dtype.h"
#include "coconet/base/slices.h"
#include "coconet/ir/graph.h"

namespace coconet::bench {

/// Bags of rows of embedding tables on the ranks that have them, and an AllToAll of their sums: the
/// workload dlrm_embedding.
struct EmbeddingCase {
  DType dtype = DType::kF32;      // of the rows: kF32 or kBF16
  std::vector<int64_t> lookups;   // a sample, by table
  int64_t rows = 0, columns = 0;  // of each table
  int64_t samples = 0;            // of all ranks together
  double zipf = 0;                // exponent of the indices' distribution; 0: uniform
  bool parts_only = false;        // of nodes: pooling alone and sending alone
  double seconds = 5;             // of the rounds
  double budget_s = 20;           // of tuning one contender
  std::string fbgemm = {};        // the site-packages folder that has FBGEMM and torch; "": none

  /// The fields that are words of a worker's arguments (bench/harness/worker.h).
  static auto Fields(auto& c) {
    return std::tie(c.dtype, c.lookups, c.rows, c.columns, c.samples, c.zipf, c.parts_only,
                    c.seconds, c.budget_s, c.fbgemm);
  }
};

/// A row of `fused`.
RowTask EmbeddingTask(absl::string_view name, const EmbeddingCase& c, int ranks);

/// The values of tables, and the rows that indices name.
Numbers NumbersOf(const EmbeddingCase& c);
Sizes SizesOf(const EmbeddingCase& c);
/// The program without its AllToAll, bound.
absl::StatusOr<Graph> PoolingAlone(const EmbeddingCase& c);

/// A table's columns on one rank, and where they begin among all of that rank's.
struct OwnColumns {
  int table = 0;
  Range columns;
  int64_t at = 0;
};

/// How the columns of all tables are cut over ranks.
struct ColumnCut {
  std::vector<OwnColumns> mine;
  std::vector<int64_t> width;  // by rank: its columns of all tables
  double imbalance = 1;        // look-ups, in columns, of the busiest rank over the mean
};
/// As the program's schedules cut them. `bound` is the program.
absl::StatusOr<ColumnCut> CutColumns(const EmbeddingCase& c, const Graph& bound, int rank,
                                     int ranks);

/// Sets of indices that steps take in turn, like the batches of a training job, so that rows come
/// from memory: the rows of all sets are twice as long as the last cache, or the sets are 64.
/// Whichever contender runs takes the next set, the same on all ranks.
class IndexSets {
 public:
  /// Index sets for the tables that a rank has columns of.
  IndexSets(const EmbeddingCase& c, const std::vector<OwnColumns>& tables);

  int64_t size() const { return static_cast<int64_t>(sets_.size()); }
  int64_t Next() { return turn_++ % size(); }
  /// Copies the indices of the k-th of the tables.
  void Copy(int64_t set, size_t k, void* to) const;

 private:
  std::vector<std::vector<std::vector<int32_t>>> sets_;  // [set][k]
  int64_t turn_ = 0;
};

}  // namespace coconet::bench
