#include "autotune/calibrate/by_node.h"

#include <cstdint>
#include <memory>
#include <numeric>

#include "autotune/calibrate/stopwatch.h"
#include "autotune/calibrate/timed_program.h"
#include "autotune/runner/rank_runner.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "coconet/language/language.h"
#include "coconet/schedule/schedule.h"
#include "jit/lower/lower.h"

namespace coconet {
namespace {

constexpr int64_t kElements[] = {256, 16384, 262144, 2097152};
constexpr int kSamples = 9;

struct SplitReduction {
  TypedGraph program;
  Lowered lowered;
};

absl::StatusOr<SplitReduction> MakeSplitReduction(int64_t elements, const Config& config,
                                                  const Target& target) {
  Program p("all_reduce");
  p.Output("y",
           AllReduce(ReduceKind::kSum, p.Input("x", DType::kF32, {elements}, Layout::Local())));
  ASSIGN_OR_RETURN(const Graph graph, p.graph());
  ASSIGN_OR_RETURN(Schedule schedule, InitialSchedule(graph));
  SplitByNode split;
  for (NodeId id = 0; id < schedule.graph().size(); ++id) {
    if (As<struct AllReduce>(schedule.graph(), id) != nullptr) split.node = id;
  }
  ASSIGN_OR_RETURN(schedule, Apply(schedule, split));
  SplitReduction made{schedule.program(), {}};
  ASSIGN_OR_RETURN(made.lowered, Lower(schedule, config, target));
  return made;
}

}  // namespace

absl::StatusOr<std::vector<MeasuredWork>> MeasureCollectivesByNode(Rank& rank, Binaries& binaries) {
  std::vector<MeasuredWork> measured;
  if (rank.mesh().nodes == 1 || rank.mesh().ranks == 1) return measured;
  ASSIGN_OR_RETURN(const Config config, PlainConfig(rank));
  const Target target = TargetOf(rank);
  ASSIGN_OR_RETURN(const std::shared_ptr<Module> module, CompilePrograms(binaries, {}));
  std::vector<SplitReduction> reductions;
  for (int64_t elements : kElements) {
    ASSIGN_OR_RETURN(reductions.emplace_back(), MakeSplitReduction(elements, config, target));
  }
  std::vector<TimedPlan> plans;
  for (const SplitReduction& reduction : reductions)
    plans.push_back({&reduction.lowered.plan, module});
  ASSIGN_OR_RETURN(Stopwatch stopwatch, Stopwatch::Create(rank, std::move(plans)));
  for (size_t i = 0; i < reductions.size(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<double> us, stopwatch.TimeSteps(i, kSamples));
    for (const PlacedLaunch& launch : reductions[i].lowered.launches) {
      if (launch.begin == launch.end) continue;
      measured.push_back(
          {WorkOf(reductions[i].program, launch.nodes, target),
           std::accumulate(us.begin() + launch.begin, us.begin() + launch.end, 0.0)});
    }
  }
  return measured;
}

}  // namespace coconet
