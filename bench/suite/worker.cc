#include <memory>

#include "absl/strings/str_cat.h"
#include "autotune/session/session.h"
#include "bench/optimizers/tuned_step.h"
#include "bench/suite/suite.h"
#include "coconet/base/status.h"
#include "jit/compile/compiler.h"
#include "runtime/world.h"

namespace coconet::bench {
namespace {

const double kStartS = SecondsNow();  // when the process began

/// The time since kStartS, measured once: the maximum over ranks; and fact "compiler_runs".
absl::StatusOr<std::vector<Finding>> Once(Rank& rank) {
  ASSIGN_OR_RETURN(const double us, rank.exchange().Max(1e6 * (SecondsNow() - kStartS)));
  return std::vector<Finding>{
      {.side = "ours",
       .timing = {.median_us = us, .low_us = us, .high_us = us, .samples = 1},
       .steps = 1},
      {.side = "compiler_runs", .detail = absl::StrCat(CompilerRuns())}};
}

absl::StatusOr<std::vector<Finding>> FirstStep(Rank& rank, const SessionOptions& options,
                                               const Cell& cell) {
  Session session(rank, options);
  ASSIGN_OR_RETURN(const std::unique_ptr<TunedStep> step, TunedStep::Make(session, cell));
  RETURN_IF_ERROR(step->Run(1));
  return Once(rank);
}

absl::StatusOr<std::vector<Finding>> TuneOnce(Rank& rank, const SessionOptions& options,
                                              const Cell& cell) {
  Session session(rank, options);
  ASSIGN_OR_RETURN(const TunedProgram tuned, TunedStep::Compile(session, cell));
  ASSIGN_OR_RETURN(std::vector<Finding> found, Once(rank));
  found.push_back({.side = "variants", .detail = absl::StrCat(tuned.variants().size())});
  found.push_back({.side = "variant", .detail = Words(tuned.record().best)});
  return found;
}

absl::StatusOr<std::vector<Finding>> MeasureCell(Rank& rank, const WorkerOptions& options,
                                                 const Cell& cell) {
  SessionOptions session;
  session.budget_s = options.budget_s;
  if (options.tuned) session.policy = Policy::kCacheOnly;
  const RoundTerms terms = {
      .seconds = options.seconds, .min_rounds = options.min_rounds, .steps = options.steps};
  switch (options.task) {
    case WorkerOptions::Task::kCompare:
      return Compare(rank, session, cell, options.sides, terms);
    case WorkerOptions::Task::kDispatch:
      return MeasureDispatch(rank, session, terms);
    case WorkerOptions::Task::kWarmStart:
      return FirstStep(rank, session, cell);
    case WorkerOptions::Task::kTune:
      return TuneOnce(rank, session, cell);
  }
  return absl::InternalError("no task");
}

absl::StatusOr<std::vector<Finding>> MeasureCells(Rank& rank, const WorkerOptions& options) {
  std::vector<Finding> found;
  for (const Cell& cell : options.cells) {
    ASSIGN_OR_RETURN(const std::vector<Finding> more, MeasureCell(rank, options, cell));
    for (const Finding& finding : more) {
      found.push_back(finding);
      found.back().of = Text(cell);
    }
  }
  return found;
}

}  // namespace

const Worker<WorkerOptions> kSuiteWorker("suite", MeasureCells, [](const WorkerOptions& options) {
  return WorldOptions{.ranks = options.threads};
});

}  // namespace coconet::bench
