#include "bench/suite/worker.h"

#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autotune/session/session.h"
#include "bench/harness/worker.h"
#include "bench/optimizers/dispatch.h"
#include "bench/optimizers/tuned_step.h"
#include "coconet/base/status.h"
#include "jit/compile/compiler.h"
#include "runtime/world.h"

namespace coconet::bench {
namespace {

using Clock = std::chrono::steady_clock;

const Clock::time_point kStart = Clock::now();  // of the process

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// A time measured once: the maximum over ranks since the process began.
absl::StatusOr<Finding> Once(Rank& rank, const Cell& cell) {
  ASSIGN_OR_RETURN(const double us, rank.exchange().Max(MicrosecondsSince(kStart)));
  return Finding{.side = "ours",
                 .of = Text(cell),
                 .timing = {.median_us = us, .low_us = us, .high_us = us, .samples = 1},
                 .steps = 1};
}

Finding CompilerRunsSoFar(const Cell& cell) {
  return {.side = "compiler runs", .of = Text(cell), .detail = absl::StrCat(CompilerRuns())};
}

absl::StatusOr<std::vector<Finding>> FirstStep(Rank& rank, const SessionOptions& options,
                                               const Cell& cell) {
  Session session(rank, options);
  ASSIGN_OR_RETURN(const std::unique_ptr<TunedStep> step, TunedStep::Make(session, cell));
  RETURN_IF_ERROR(step->Run(1));
  ASSIGN_OR_RETURN(Finding finding, Once(rank, cell));
  return std::vector<Finding>{std::move(finding), CompilerRunsSoFar(cell)};
}

absl::StatusOr<std::vector<Finding>> TuneOnce(Rank& rank, const SessionOptions& options,
                                              const Cell& cell) {
  Session session(rank, options);
  ASSIGN_OR_RETURN(const TunedProgram tuned, TunedStep::Compile(session, cell));
  ASSIGN_OR_RETURN(Finding finding, Once(rank, cell));
  Finding variants = {
      .side = "variants", .of = Text(cell), .detail = absl::StrCat(tuned.variants().size())};
  Finding best = {.side = "variant", .of = Text(cell), .detail = Words(tuned.record().best)};
  return std::vector<Finding>{std::move(finding), std::move(variants), std::move(best),
                              CompilerRunsSoFar(cell)};
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
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

const Worker<WorkerOptions> kWorker("suite", MeasureCells, [](const WorkerOptions& options) {
  return WorldOptions{.ranks = options.threads};
});

}  // namespace

std::vector<std::string> Arguments(const WorkerOptions& options) {
  return kWorker.Arguments(options);
}

}  // namespace coconet::bench
