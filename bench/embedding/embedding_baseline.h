#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/baselines/array.h"
#include "bench/embedding/embedding_case.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// The sums of a case's bags by FBGEMM's kernels, as the wheels of fbgemm-gpu-cpu and torch have
/// them: loaded while the program runs, and nothing of them is needed to build it. They are what
/// GenerateEmbeddingSpMDM makes for f32 or bf16, which prefetches 16 rows ahead.
class FbgemmBags {
 public:
  /// Pools the columns of `mine`; bag b's sums begin at b * out_stride. EmbeddingCase::fbgemm is a
  /// folder that has `torch` and `fbgemm_gpu` in it, as `site-packages` of a virtual environment.
  /// NotFound, with the loader's words, if one of them cannot be loaded or lacks what is needed.
  static absl::StatusOr<FbgemmBags> Make(const EmbeddingCase& c,
                                         const std::vector<OwnColumns>& mine, int64_t out_stride);

  /// Pools all bags, those of the k-th of `mine` into out(k). Requires indices of the tables.
  void Pool(const std::vector<Array>& tables, const std::vector<Array>& indices,
            absl::FunctionRef<float*(size_t k)> out) const;

 private:
  /// Sums of `bags` bags: the rows `indices` of a table of `rows` rows; bag b has the indices from
  /// offsets[b] up to offsets[b + 1]. False if an index is not of the table.
  using Kernel =
      std::function<bool(int64_t bags, int64_t indices_count, int64_t rows, const void* table,
                         const int32_t* indices, const int32_t* offsets, float* sums)>;
  struct Table {
    Kernel kernel;
    int64_t lookups = 0;  // of all bags
    Array offsets;
  };

  template <class T>
  static absl::StatusOr<Kernel> KernelFor(void* library, int64_t columns, int64_t out_stride);

  int64_t bags_ = 0, rows_ = 0;
  std::vector<Table> tables_;
};

/// A careful user's step: pools into a send buffer, MPI_Alltoallv, unpacks to one row a sample.
/// The columns are cut as ours are. Pools by FBGEMM's kernel if EmbeddingCase names it, it can be
/// loaded and is faster here, else by a loop of this benchmark.
class EmbeddingBaseline {
 public:
  /// `sets` outlives it.
  static absl::StatusOr<std::unique_ptr<EmbeddingBaseline>> Make(const EmbeddingCase& c,
                                                                 const ColumnCut& cut,
                                                                 IndexSets& sets, const Rank& rank);
  /// Takes a set of indices.
  void Take(int64_t set);
  /// The step with the indices that were taken.
  absl::Status RunOnce();
  /// Takes the next set, and pools alone.
  absl::Status Pool() {
    Take(sets_->Next());
    PoolOnce();
    return absl::OkStatus();
  }
  /// The step with the next set.
  absl::Status Run() {
    Take(sets_->Next());
    return RunOnce();
  }

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
  void PoolOnce();
  void PoolByLoop();
  void PoolByFbgemm();

  EmbeddingCase c_;
  ColumnCut cut_;
  IndexSets* sets_ = nullptr;
  int64_t width_ = 0;  // of own columns
  std::vector<int64_t> sent_, received_;
  Range samples_;
  std::vector<Array> tables_, indices_;  // by own columns
  Array leaving_, arriving_, pooled_;
  std::optional<FbgemmBags> fbgemm_;  // none: the loop
  std::string pools_by_ = "loop";
};

}  // namespace coconet::bench
