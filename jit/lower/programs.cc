#include "jit/lower/programs.h"

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"

namespace coconet {

absl::StatusOr<Programs> Programs::Of(const Schedule& schedule, const Config& config,
                                      const Target& target) {
  Programs programs;
  const bool has_lists = !schedule.graph().lists.empty();
  programs.has_lists_ = has_lists;
  programs.kinds_ = has_lists ? schedule.kinds() : TensorKinds{{0}, {0}, {1}};
  const int tensors = has_lists ? programs.tensors() : 0;
  for (const Schedule& one : has_lists ? schedule.of_kinds() : std::vector{schedule}) {
    SizedProgram& program = programs.list_.emplace_back();
    ASSIGN_OR_RETURN(program.launches,
                     CutIntoLaunches(one, LeftToLibrary(config.protocol, target.nodes),
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
