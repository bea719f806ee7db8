#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "bench/baselines/array.h"
#include "bench/embedding/embedding_case.h"
#include "bench/embedding/fbgemm.h"

namespace coconet::bench {

/// The sums of a case's bags by FBGEMM's kernels, with their offsets.
class FbgemmBags {
 public:
  /// The columns of `mine`, from where EmbeddingCase::fbgemm says; bag b's sums begin at b *
  /// out_stride. NotFound as of Fbgemm::Load.
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
