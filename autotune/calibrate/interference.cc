#include "autotune/calibrate/interference.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "autotune/calibrate/probes.h"
#include "autotune/calibrate/stopwatch.h"
#include "autotune/calibrate/timed_program.h"
#include "autotune/runner/rank_runner.h"
#include "coconet/base/status.h"
#include "coconet/schedule/schedule.h"

namespace coconet {
namespace {

/// How often the longer lane runs while the shorter one runs once, at least.
constexpr int kLonger = 4;
constexpr int64_t kElements = 1 << 18;

bool IsCollective(const Step& step) { return std::holds_alternative<CollectiveStep>(step); }

/// The plan's kernels so many times on lane 0, and its collectives on lane 1.
Plan Repeated(const Plan& plan, int kernels, int collectives) {
  Plan repeated = plan;
  repeated.steps.clear();
  for (const Step& step : plan.steps) {
    Step moved = step;
    std::visit(
        [&](auto& s) {
          s.lane = IsCollective(step) ? 1 : 0;
          s.after.clear();
        },
        moved);
    for (int i = 0; i < (IsCollective(step) ? collectives : kernels); ++i)
      repeated.steps.push_back(moved);
  }
  return repeated;
}

}  // namespace

void FitInterference(const LaneExcess& excess, Rates& rates) {
  double least = -1;
  constexpr double kRatio = 1.02, kMost = 8;
  for (double computation = 1; computation < kMost; computation *= kRatio) {
    for (double collective = 1; collective < kMost; collective *= kRatio) {
      const double a = collective * (1 - 1 / computation) - excess.beside_computation,
                   b = computation * (1 - 1 / collective) - excess.beside_collectives,
                   apart = std::log(computation / collective);
      const double error = a * a + b * b + 0.01 * apart * apart;
      if (least >= 0 && error >= least) continue;
      least = error;
      rates.computation_beside = computation;
      rates.collective_beside = collective;
    }
  }
}

absl::Status MeasureInterference(Rank& rank, Binaries& binaries, Rates& rates) {
  ASSIGN_OR_RETURN(const Graph program, ProbeOfBoth(kElements));
  ASSIGN_OR_RETURN(const Schedule schedule, InitialSchedule(program));
  ASSIGN_OR_RETURN(const Config config, PlainConfig(rank));
  TimedProgram both;
  ASSIGN_OR_RETURN(const Schedule fused, Apply(schedule, [&] {
                     Fuse fuse;
                     for (const Launch& launch : schedule.launches().list) {
                       for (NodeId id : launch.nodes) {
                         const Role role = RoleOf(schedule.graph().nodes[id].op);
                         if (role == Role::kElementwise) fuse.nodes.push_back(id);
                       }
                     }
                     return Transformation(fuse);
                   }()));
  both.program = fused.program();
  ASSIGN_OR_RETURN(both.lowered, Lower(fused, config, TargetOf(rank)));
  ASSIGN_OR_RETURN(const std::shared_ptr<Module> module, CompilePrograms(binaries, {&both, 1}));
  const auto time = [&](int kernels, int collectives) -> absl::StatusOr<double> {
    const Plan plan = Repeated(both.lowered.plan, kernels, collectives);
    ASSIGN_OR_RETURN(Stopwatch stopwatch, Stopwatch::Create(rank, {{&plan, module}}));
    return stopwatch.Time(0, {});
  };
  ASSIGN_OR_RETURN(const double kernel, time(8, 0));
  ASSIGN_OR_RETURN(const double collective, time(0, 4));
  // Enough of each that the other lane's start and end do not count.
  const auto times = [](double longer, double shorter) {
    return std::clamp(static_cast<int>(std::ceil(kLonger * longer / shorter)), 1, 1000);
  };
  const int few_kernels = 8, few_collectives = 4;
  const int many_kernels = few_kernels * times(collective, kernel),
            many_collectives = few_collectives * times(kernel, collective);
  ASSIGN_OR_RETURN(const double kernels, time(many_kernels, 0));
  ASSIGN_OR_RETURN(const double collectives, time(0, many_collectives));
  ASSIGN_OR_RETURN(const double of_kernels, time(many_kernels, few_collectives));
  ASSIGN_OR_RETURN(const double of_collectives, time(few_kernels, many_collectives));
  FitInterference({.beside_computation = std::max(0.0, of_kernels - kernels) / collective,
                   .beside_collectives = std::max(0.0, of_collectives - collectives) / kernel},
                  rates);
  return absl::OkStatus();
}

}  // namespace coconet
