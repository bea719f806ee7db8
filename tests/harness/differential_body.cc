#include "tests/harness/differential_body.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/lists.h"
#include "coconet/language/text.h"
#include "coconet/schedule/describe.h"
#include "tests/harness/rank_memory.h"

namespace coconet {
namespace {

/// Steps of a plan: the first one as it is, those after it as a graph, where the backend has them.
class Stepper {
 public:
  explicit Stepper(BoundPlan& plan) : plan_(plan) {}
  absl::Status Run(int step) {
    if (step == 1) {
      absl::StatusOr<std::unique_ptr<BoundPlan>> graph = plan_.Capture(1);
      const bool has_none =
          absl::IsUnimplemented(graph.status()) || absl::IsFailedPrecondition(graph.status());
      if (!graph.ok() && !has_none) return graph.status();
      if (graph.ok()) graph_ = *std::move(graph);
    }
    return graph_ == nullptr ? plan_.Run() : graph_->Run();
  }

 private:
  BoundPlan& plan_;
  std::unique_ptr<BoundPlan> graph_;
};

/// Runs steps one after the other, then beside each other, and compares what they leave. `found`:
/// Internal with the first difference. Other errors are the runtime's.
absl::Status CompareSuccessiveSteps(RankMemory& memory, BoundPlan& plan, const StepData& data,
                                    absl::Status& found) {
  constexpr int kSteps = 6;
  std::vector<std::string> read[2];  // outputs of the steps, then states and outputs
  for (const bool beside : {false, true}) {
    for (int step = 0; step < kSteps; ++step) {
      if (step == 0) {
        memory.Fill(data, step);
      } else {
        memory.FillForHost(data, step);
      }
      RETURN_IF_ERROR(beside ? plan.Advance() : plan.Run());
      read[beside].push_back(memory.ReadOutputs());
    }
    RETURN_IF_ERROR(plan.Wait());
    read[beside].push_back(memory.Read());
    found.Update(memory.CheckUntouched());
  }
  for (int step = 0; step <= kSteps; ++step) {
    if (read[true][step] == read[false][step]) continue;
    found.Update(absl::InternalError(
        absl::StrCat("what ", kSteps, " steps leave, or step ", step,
                     " of them, is not the same beside others as one after the other")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoweredVariant> MakeVariant(const Graph& program, const Schedule& schedule,
                                           const Config& config, const Target& target) {
  ASSIGN_OR_RETURN(Lowered lowered, Lower(schedule, config, target));
  return LoweredVariant{program, schedule, config, std::move(lowered)};
}

std::string Reproducer(const LoweredVariant& variant, uint64_t seed) {
  return absl::StrCat(
      "schedule: ", Describe(variant.schedule), "\ntrace: ", TraceText(variant.schedule.trace()),
      "\nconfig: ", Text(variant.config), "\nranks: ", variant.lowered.plan.ranks,
      ", nodes: ", variant.lowered.plan.nodes, ", stages: ", variant.lowered.plan.stages,
      "  COCONET_SEED=", seed, "\n", Print(variant.program));
}

absl::StatusOr<StepResults> RunSteps(Rank& rank, const Module& kernels,
                                     const LoweredVariant& variant, const StepData& data, int steps,
                                     const RunOptions& options) {
  absl::StatusOr<RankMemory> memory =
      RankMemory::Allocate(rank, variant.schedule, variant.lowered.plan, options.shared);
  RETURN_IF_ERROR(rank.exchange().Agree(memory.status()));
  ASSIGN_OR_RETURN(const std::unique_ptr<BoundPlan> plan,
                   rank.Bind(variant.lowered.plan, kernels, memory->buffers(), options.timeout_s));
  // The steps follow each other as fast as they can: a rank that is ahead already changes what a
  // slow one must be done with.
  Stepper stepper(*plan);
  StepResults all{memory->results()};
  for (int step = 0; step < steps; ++step) {
    memory->Fill(data, step);
    if (options.before_step) options.before_step(*plan, step);
    RETURN_IF_ERROR(stepper.Run(step));
    all.memory.Update(memory->CheckWritten());
    all.read.push_back(memory->Read());
    if (all.memory.ok())
      all.memory = WithContext(memory->CheckUntouched(), absl::StrCat("step ", step));
  }
  if (!variant.lowered.plan.outlasting.empty())
    RETURN_IF_ERROR(CompareSuccessiveSteps(*memory, *plan, data, all.memory));
  return all;
}

absl::Status RunVariant(Rank& rank, const Module& kernels, const LoweredVariant& variant,
                        uint64_t seed, int steps, Tally& tally) {
  return RunVariantWith({.shared = seed % 2 == 1}, rank, kernels, variant, seed, steps, tally);
}

absl::Status RunVariantWith(const RunOptions& options, Rank& rank, const Module& kernels,
                            const LoweredVariant& variant, uint64_t seed, int steps, Tally& tally) {
  ASSIGN_OR_RETURN(const StepResults mine,
                   RunSteps(rank, kernels, variant, UsualData(seed), steps, options));
  absl::Status verdict = mine.memory;
  absl::StatusOr<Judge> judge =
      Judge::Create(Expand(variant.program), mine.results, rank.mesh(), rank.rank(), seed);
  CC_CHECK(judge.ok());
  for (int step = 0; step < steps; ++step) {
    ASSIGN_OR_RETURN(const std::vector<std::string> all,
                     rank.exchange().AllGather(mine.read[step]));
    if (verdict.ok())
      verdict = WithContext(judge->Step(step, all, tally), absl::StrCat("step ", step));
  }
  if (rank.rank() == 0) ++tally.variants;
  return rank.exchange().Agree(verdict);
}

}  // namespace coconet
