#pragma once

#include <cstdint>
#include <vector>

#include "bench/harness/worker.h"
#include "bench/optimizers/cell.h"
#include "bench/optimizers/compare.h"

namespace coconet::bench {

/// What a worker of the suite measures.
struct WorkerOptions {
  enum class Task : uint8_t {
    kCompare,   // Compare, cell by cell
    kDispatch,  // MeasureDispatch
    /// Once, the time from before the world to the first result; and fact "compiler runs".
    kWarmStart,
    kTune,  // the time of tuning the cells; and facts "variants", "variant", "compiler runs"
  };
  Task task{};
  int processes = 0;  // ranks under mpirun, which tells the worker their number
  int threads = 0;    // ranks, if they are threads
  std::vector<Cell> cells = {};
  Sides sides = {};
  double seconds = 1;  // of the rounds of one cell
  int min_rounds = 7;
  int64_t steps = 0;  // per sample; 0: as in RoundTerms
  double budget_s = 60;
  bool tuned = false;  // takes what the cache has, even of a search that the budget ended

  /// Its fields are words of a worker's arguments (bench/harness/worker.h).
  static void VisitFields(auto& options, auto visit) {
    visit("task", options.task);
    visit("threads", options.threads);
    visit("cells", options.cells);
    visit("ours", options.sides.ours);
    visit("flat", options.sides.flat);
    visit("baseline", options.sides.baseline);
    visit("form", options.sides.form);
    visit("limit", options.sides.limit);
    visit("seconds", options.seconds);
    visit("min_rounds", options.min_rounds);
    visit("steps", options.steps);
    visit("tuned", options.tuned);
    visit("budget", options.budget_s);
  }
};

extern const Worker<WorkerOptions> kSuiteWorker;

}  // namespace coconet::bench
