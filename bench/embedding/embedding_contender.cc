#include "bench/embedding/embedding_contender.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"

namespace coconet::bench {

absl::StatusOr<std::unique_ptr<EmbeddingContender>> EmbeddingContender::Make(
    Rank& rank, const SessionOptions& options, const Graph& program, const EmbeddingCase& c,
    const ColumnCut& cut, IndexSets& sets) {
  auto made = std::make_unique<EmbeddingContender>();
  made->c_ = c;
  made->sets_ = &sets;
  for (const OwnColumns& own : cut.mine) made->tables_.push_back(own.table);
  std::vector<std::string> written;  // the same on all ranks, which bind together
  for (int t = 0; t < static_cast<int>(c.lookups.size()); ++t)
    written.push_back(TensorName("indices", t));
  ASSIGN_OR_RETURN(made->contender_,
                   TunedContender::Make(rank, options, program, NumbersOf(c), written));
  return made;
}

void EmbeddingContender::Take(int64_t set) {
  for (size_t k = 0; k < tables_.size(); ++k)
    sets_->Copy(set, k, contender_->Written(static_cast<size_t>(tables_[k])));
}

absl::Status EmbeddingContender::Run(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    Take(sets_->Next());
    RETURN_IF_ERROR(contender_->Run(1));
  }
  return absl::OkStatus();
}

absl::Status EmbeddingContender::CheckAlike(Rank& rank, EmbeddingBaseline& theirs) {
  const int64_t set = sets_->Next();
  Take(set);
  theirs.Take(set);
  RETURN_IF_ERROR(contender_->Run(1));
  RETURN_IF_ERROR(theirs.RunOnce());
  std::vector<std::vector<float>> sums;
  for (int t = 0; t < static_cast<int>(c_.lookups.size()); ++t) {
    ASSIGN_OR_RETURN(sums.emplace_back(), contender_->Read(TensorName("pooled", t)));
  }
  return rank.exchange().Agree(
      CheckSums(c_, theirs, "ours", [&](int table, int64_t sample, int64_t column) {
        return sums[table][sample * c_.columns + column];
      }));
}

absl::Status CheckSums(const EmbeddingCase& c, const EmbeddingBaseline& theirs,
                       absl::string_view side,
                       const std::function<float(int, int64_t, int64_t)>& at) {
  for (int t = 0; t < static_cast<int>(c.lookups.size()); ++t) {
    // Numbers are below 1, and sums of n of them are off by less than n^2 / 2 roundings.
    const double lookups = static_cast<double>(c.lookups[t]);
    const double most = lookups * lookups * 0x1p-24 + 1e-6;
    for (int64_t b = theirs.samples().begin; b < theirs.samples().end; ++b) {
      for (int64_t j = 0; j < c.columns; ++j) {
        const double have = at(t, b, j), want = theirs.At(t, b, j);
        if (std::abs(have - want) <= most) continue;
        return absl::InternalError(absl::StrCat("table ", t, ", sample ", b, ", column ", j, ": ",
                                                side, " is ", have, ", the baseline ", want));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace coconet::bench
