#ifndef COCONET_BENCH_WORKER_H_
#define COCONET_BENCH_WORKER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "bench/compare.h"
#include "bench/finding.h"

namespace coconet::bench {

/// What this program does when it was started by RunWorker: measures in a world of its own, and
/// writes what it found.
struct WorkerOptions {
  enum class Task : uint8_t {
    kCompare,    // Compare, cell by cell
    kDispatch,   // MeasureDispatch
    kWarmStart,  // the time from before the world to the first result, once; and fact "compiler
                 // runs"
    kTune,       // the time that tuning the cells takes; and facts "variants", "compiler runs"
  };
  Task task{};
  int threads = 0;  // ranks; 0: processes, under mpirun
  std::vector<Cell> cells = {};
  Sides sides = {};
  double seconds = 1;  // of the rounds of one cell
  int min_rounds = 7;
  int64_t steps = 0;  // per sample; 0: as RoundTerms has it
  double budget_s = 60;
  bool tuned = false;  // takes what the cache has, also what a budget ended
  std::string out = {};
};

absl::Status Work(const WorkerOptions& options);

/// As arguments of RunWorker, which adds `out` itself, and back. nullopt: a user started this
/// program. InvalidArgument for a worker's arguments that RunWorker does not write.
std::vector<std::string> Arguments(const WorkerOptions& options);
absl::StatusOr<std::optional<WorkerOptions>> WorkerOptionsFrom(absl::Span<char* const> arguments);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_WORKER_H_
