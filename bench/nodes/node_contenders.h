#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/store/record.h"
#include "bench/harness/finding.h"
#include "bench/harness/rounds.h"
#include "coconet/schedule/schedule.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// What a worker on several nodes times, for MeasureOnTwoNodes (node_row.h):
///   computation  all that a rank computes, tuned, nothing exchanged
///   sending      what a rank exchanges, nothing computed, by the library that ours uses
///   ours         the program, tuned
///   sequential   the same without overlap
class NodeContenders {
 public:
  using Run = std::function<absl::Status(int64_t steps)>;

  void AddSending(Run run) { contenders_.push_back({"sending", std::move(run)}); }
  /// A fact "variant" tells what was picked.
  void AddTuned(absl::string_view side, Run run, const TuningRecord& record);

  /// Collective: times all. Facts beside those of AddTuned: "sending_processor_us", and "bytes",
  /// the most that leave a rank in a step.
  absl::StatusOr<std::vector<Finding>> Measure(Rank& rank, int64_t bytes, double seconds) const;

 private:
  std::vector<Contender> contenders_;
  std::vector<Finding> variants_;
};

/// SessionOptions::admits of "sequential".
bool IsSequential(const Schedule& schedule, const Config& config);

}  // namespace coconet::bench
