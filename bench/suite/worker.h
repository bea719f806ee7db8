#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/harness/finding.h"
#include "bench/optimizers/cell.h"
#include "bench/optimizers/compare.h"

namespace coconet::bench {

/// The options of this program when RunWorker has started it: it measures in a world of its own and
/// writes its findings.
struct WorkerOptions {
  enum class Task : uint8_t {
    kCompare,   // Compare, cell by cell
    kDispatch,  // MeasureDispatch
    /// Once, the time from before the world to the first result; and fact "compiler runs".
    kWarmStart,
    kTune,  // the time of tuning the cells; and facts "variants", "compiler runs"
  };
  Task task{};
  int threads = 0;  // ranks; 0: processes under mpirun
  std::vector<Cell> cells = {};
  Sides sides = {};
  double seconds = 1;  // of the rounds of one cell
  int min_rounds = 7;
  int64_t steps = 0;  // per sample; 0: as in RoundTerms
  double budget_s = 60;
  bool tuned = false;  // takes what the cache has, even of a search that the budget ended
  std::string out = {};
};

absl::Status Work(const WorkerOptions& options);

/// A worker's arguments (RunWorker adds `out`), and the options parsed from them; nullopt: this
/// program was started by a user. InvalidArgument for wrong arguments.
std::vector<std::string> Arguments(const WorkerOptions& options);
absl::StatusOr<std::optional<WorkerOptions>> WorkerOptionsFrom(absl::Span<char* const> arguments);

}  // namespace coconet::bench
