#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/embedding/embedding_baseline.h"
#include "bench/embedding/embedding_case.h"
#include "bench/harness/tuned_contender.h"

namespace coconet::bench {

/// Ours, which takes sets of indices in turn as the baseline does.
class EmbeddingContender {
 public:
  /// Collective. `sets` outlives it.
  static absl::StatusOr<std::unique_ptr<EmbeddingContender>> Make(
      Rank& rank, const SessionOptions& options, const Graph& program, const EmbeddingCase& c,
      const ColumnCut& cut, IndexSets& sets);

  /// Steps, each of the next set.
  absl::Status Run(int64_t steps);
  const TuningRecord& record() const { return contender_->program().record(); }
  const TunedProgram& program() const { return contender_->program(); }

  /// Collective. After a step of each with one set, whether the sums of the rank's samples agree.
  absl::Status CheckAlike(Rank& rank, EmbeddingBaseline& theirs);

 private:
  void Take(int64_t set);

  EmbeddingCase c_;
  IndexSets* sets_ = nullptr;
  std::vector<int> tables_;  // that the rank has columns of
  std::unique_ptr<TunedContender> contender_;
};

/// Internal, in words, where a side's sums differ from the baseline's by more than roundings.
absl::Status CheckSums(const EmbeddingCase& c, const EmbeddingBaseline& theirs,
                       absl::string_view side,
                       const std::function<float(int table, int64_t sample, int64_t column)>& at);

}  // namespace coconet::bench
