#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "autotune/measure/test_data.h"
#include "autotune/measure/verifier.h"
#include "autotune/runner/typical_rows.h"
#include "coconet/ir/graph.h"
#include "runtime/rank.h"

namespace coconet {

/// The inputs and states that say which rows a step takes, for timed steps: a step then does as
/// much as it may ever do, whatever was verified before it, in the same memory. Row indices differ
/// from step to step, as in a job, whose rows come from memory; with the same indices over and over
/// they would come from a cache, and other variants would be fastest.
class TimingInputs {
 public:
  /// `program` is bound, and has no lists. `seed` is equal on all ranks. `typical` replaces the
  /// seed's rows; may be empty.
  TimingInputs(const Graph& program, uint64_t seed, int stage_size, TypicalRows typical = nullptr);

  /// The number of sets: one if no step differs, none if the program takes no rows by index.
  int sets() const { return static_cast<int>(sets_.size()); }
  /// Writes the next set, in turn, to the buffers that a variant has. Ranks that call it equally
  /// often have equal sets.
  absl::Status Write(const Rank& rank, Instance& instance);

 private:
  std::vector<TestData> sets_;
  TypicalRows typical_;
  int next_ = 0;
};

}  // namespace coconet
