#include "jit/lower/programs.h"

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"

namespace coconet {

absl::StatusOr<Programs> Programs::Of(const Schedule& schedule, const Config& config,
                                      const Target& target) {
  const int tensors = TensorCount(schedule.graph());
  Programs programs;
  programs.has_lists_ = tensors > 0;
  programs.kinds_ = tensors > 0 ? KindsOf(schedule.graph()) : TensorKinds{{0}, {0}, {1}};
  for (int first : programs.kinds_.first) {
    SizedProgram& program = programs.list_.emplace_back();
    ASSIGN_OR_RETURN(program.launches,
                     CutIntoLaunches(tensors > 0 ? schedule.OfTensor(first) : schedule,
                                     LeftToLibrary(config.protocol, target.nodes),
                                     Concurrency{config.concurrent, config.bucket}, tensors,
                                     schedule.program().each()));
    program.table = AssignBuffers(program.launches, target,
                                  config.one_shot == OneShot::kPull || target.ranks == 1);
  }
  return programs;
}

bool Programs::IsOfTensors(int launch) const {
  return absl::c_any_of(launches()[launch].nodes, [&](NodeId id) { return launches().each[id]; });
}

}  // namespace coconet
