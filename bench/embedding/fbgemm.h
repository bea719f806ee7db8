#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "bench/baselines/array.h"
#include "bench/embedding/embedding_case.h"
#include "coconet/base/dtype.h"

namespace coconet::bench {

/// FBGEMM's sums of bags, as the wheels of fbgemm-gpu-cpu and torch have them: loaded while the
/// program runs, and nothing of them is needed to build it.
class Fbgemm {
 public:
  /// Sums of `bags` bags: the rows `indices` of a table of `rows` rows; bag b has the indices from
  /// offsets[b] up to offsets[b + 1]. False where an index is not of the table.
  using Pool =
      std::function<bool(int64_t bags, int64_t indices_count, int64_t rows, const void* table,
                         const int32_t* indices, const int32_t* offsets, float* sums)>;

  /// From a folder that has `torch` and `fbgemm_gpu` in it, as `site-packages` of a virtual
  /// environment. NotFound, with the loader's words, where one of them cannot be loaded or lacks
  /// what is needed.
  static absl::StatusOr<Fbgemm> Load(const std::string& site_packages);

  /// What GenerateEmbeddingSpMDM makes for rows of `columns` columns in f32 or bf16, which
  /// prefetches 16 rows ahead; bag b's sums begin at b * out_stride.
  Pool MakePool(DType dtype, int64_t columns, int64_t out_stride) const;

 private:
  void* f32_ = nullptr;
  void* bf16_ = nullptr;
};

/// The sums of a case's bags by FBGEMM's kernels, with their offsets.
class FbgemmBags {
 public:
  /// Pools the columns of `mine`, by what EmbeddingCase::fbgemm names; bag b's sums begin at
  /// b * out_stride. NotFound as of Fbgemm::Load.
  static absl::StatusOr<FbgemmBags> Make(const EmbeddingCase& c,
                                         const std::vector<OwnColumns>& mine, int64_t out_stride);
  FbgemmBags() = default;

  /// All bags: of the k-th of `mine` into out(k). Requires indices of the tables.
  void Pool(const std::vector<Array>& tables, const std::vector<Array>& indices,
            absl::FunctionRef<float*(size_t k)> out) const;

 private:
  struct Table {
    Fbgemm::Pool pool;
    int64_t lookups = 0;  // of all bags
    Array offsets;
  };
  int64_t bags_ = 0, rows_ = 0;
  std::vector<Table> tables_;
};

}  // namespace coconet::bench
