#include "bench/embedding/fbgemm_bags.h"

#include <utility>

#include "coconet/base/status.h"

namespace coconet::bench {

absl::StatusOr<FbgemmBags> FbgemmBags::Make(const EmbeddingCase& c,
                                            const std::vector<OwnColumns>& mine,
                                            int64_t out_stride) {
  ASSIGN_OR_RETURN(const Fbgemm fbgemm, Fbgemm::Load(c.fbgemm));
  FbgemmBags made;
  made.bags_ = c.samples;
  made.rows_ = c.rows;
  for (const OwnColumns& own : mine) {
    const int64_t lookups = c.lookups[own.table];
    ASSIGN_OR_RETURN(Array offsets, Array::Allocate((c.samples + 1) * 4));
    for (int64_t b = 0; b <= c.samples; ++b)
      offsets.as<int32_t>()[b] = static_cast<int32_t>(b * lookups);
    made.tables_.push_back({fbgemm.MakePool(c.dtype, own.columns.size(), out_stride),
                            c.samples * lookups, std::move(offsets)});
  }
  return made;
}

void FbgemmBags::Pool(const std::vector<Array>& tables, const std::vector<Array>& indices,
                      absl::FunctionRef<float*(size_t k)> out) const {
  for (size_t k = 0; k < tables_.size(); ++k) {
    const Table& table = tables_[k];
    CC_CHECK(table.pool(bags_, table.lookups, rows_, tables[k].as<void>(), indices[k].as<int32_t>(),
                        table.offsets.as<int32_t>(), out(k)));
  }
}

}  // namespace coconet::bench
