#include "bench/embedding/embedding.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/baselines/array.h"
#include "bench/embedding/embedding_baseline.h"
#include "bench/embedding/embedding_contender.h"
#include "bench/embedding/fbgemm.h"
#include "bench/harness/rounds.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"

namespace coconet::bench {
namespace {

/// FBGEMM's kernel on the baseline's tables and indices, into memory of its own.
class FbgemmSide {
 public:
  static absl::StatusOr<std::unique_ptr<FbgemmSide>> Make(const EmbeddingCase& c,
                                                          const ColumnCut& cut,
                                                          EmbeddingBaseline& memory,
                                                          IndexSets& sets) {
    auto made = std::make_unique<FbgemmSide>();
    ASSIGN_OR_RETURN(made->bags_, FbgemmBags::Make(c, cut.mine, c.columns));
    made->columns_ = c.columns;
    made->memory_ = &memory;
    made->sets_ = &sets;
    for (size_t t = 0; t < c.lookups.size(); ++t) {
      ASSIGN_OR_RETURN(made->sums_.emplace_back(), Array::Allocate(c.samples * c.columns * 4));
    }
    return made;
  }

  absl::Status Run(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      memory_->Take(sets_->Next());
      RunOnce();
    }
    return absl::OkStatus();
  }
  void RunOnce() {
    bags_.Pool(memory_->tables(), memory_->indices(),
               [&](size_t k) { return sums_[k].as<float>(); });
  }
  float At(int table, int64_t sample, int64_t column) const {
    return sums_[table].as<float>()[sample * columns_ + column];
  }

 private:
  FbgemmBags bags_;
  int64_t columns_ = 0;
  EmbeddingBaseline* memory_ = nullptr;
  IndexSets* sets_ = nullptr;
  std::vector<Array> sums_;  // by table
};

}  // namespace

absl::StatusOr<std::vector<Finding>> MeasurePooling(Rank& rank, const EmbeddingCase& c) {
  ASSIGN_OR_RETURN(const Graph program, PoolingAlone(c));
  ASSIGN_OR_RETURN(const ColumnCut cut, CutColumns(c, program, 0, 1));
  IndexSets sets(c, cut.mine);
  SessionOptions options;
  options.budget_s = c.budget_s;
  ASSIGN_OR_RETURN(const std::unique_ptr<EmbeddingContender> ours,
                   EmbeddingContender::Make(rank, options, program, c, cut, sets));
  ASSIGN_OR_RETURN(const std::unique_ptr<EmbeddingBaseline> baseline,
                   EmbeddingBaseline::Make(c, cut, sets, 0, 1));
  RETURN_IF_ERROR(ours->CheckAlike(rank, *baseline));
  std::vector<Contender> contenders = {
      {"ours", [&](int64_t steps) { return ours->Run(steps); }},
      {"loop", [&](int64_t steps) { return baseline->Pool(steps); }}};
  const absl::StatusOr<std::unique_ptr<FbgemmSide>> fbgemm =
      c.fbgemm.empty() ? absl::NotFoundError("no --fbgemm=DIR")
                       : FbgemmSide::Make(c, cut, *baseline, sets);
  if (!fbgemm.ok() && !absl::IsNotFound(fbgemm.status())) return fbgemm.status();
  if (fbgemm.ok()) {
    (*fbgemm)->RunOnce();
    RETURN_IF_ERROR(CheckSums(c, *baseline, "fbgemm", [&](int table, int64_t sample, int64_t j) {
      return (*fbgemm)->At(table, sample, j);
    }));
    contenders.push_back({"fbgemm", [&](int64_t steps) { return (*fbgemm)->Run(steps); }});
  }
  ASSIGN_OR_RETURN(std::vector<Finding> findings,
                   MeasureInRounds(rank, contenders, {.seconds = c.seconds, .min_sample_us = 2e4}));
  findings.push_back({.side = "variant", .detail = Words(ours->record().best)});
  findings.push_back({.side = "sets", .detail = absl::StrCat(sets.size())});
  findings.push_back(
      {.side = "fbgemm_is",
       .detail = fbgemm.ok() ? "present" : absl::StrCat("absent: ", fbgemm.status().message())});
  return findings;
}

}  // namespace coconet::bench
