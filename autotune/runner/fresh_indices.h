#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "autotune/measure/test_data.h"
#include "autotune/measure/verifier.h"
#include "coconet/ir/graph.h"
#include "runtime/rank.h"

namespace coconet {

/// Other indices for each timed step. A job looks up other rows in every step, which come from
/// memory; with the same indices over and over they would come from a cache, and other variants
/// would be fastest.
class FreshIndices {
 public:
  /// Of the inputs and states of `program`, which is bound, that are indices of rows. `seed` is
  /// equal on all ranks.
  FreshIndices(const Graph& program, uint64_t seed, int stage_size);

  /// The program takes no rows by index.
  bool none() const { return sets_.empty(); }
  /// Writes the next set, of kSets in turn, where a variant has it. Ranks that call it equally
  /// often have equal sets.
  absl::Status Write(const Rank& rank, Instance& instance);

  static constexpr int kSets = 16;

 private:
  std::vector<std::unique_ptr<TestData>> sets_;
  int next_ = 0;
};

}  // namespace coconet
