#include "autotune/calibrate/timed_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "coconet/ir/op_table.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

absl::StatusOr<Config> PlainConfig(Rank& rank) {
  ASSIGN_OR_RETURN(const double narrowest,
                   rank.exchange().Max(-static_cast<double>(rank.topology().vector_bytes)));
  Config config;
  config.vec = static_cast<int>(-narrowest) / static_cast<int>(sizeof(float));
  return config;
}

absl::StatusOr<TimedProgram> MakeTimedProgram(const Graph& program, const Config& config,
                                              const Target& target) {
  ASSIGN_OR_RETURN(Schedule schedule, InitialSchedule(program));
  Fuse fuse;
  for (const Launch& launch : schedule.launches().list) {
    for (NodeId id : launch.nodes) {
      // What an output names is stored by its kernel anyway.
      if (As<Output>(schedule.graph(), id) == nullptr) fuse.nodes.push_back(id);
    }
  }
  absl::c_sort(fuse.nodes);
  if (fuse.nodes.size() > 1) {
    ASSIGN_OR_RETURN(schedule, Apply(schedule, fuse));
  }
  TimedProgram one;
  one.program = schedule.program();
  ASSIGN_OR_RETURN(one.lowered, Lower(schedule, config, target));
  const std::vector<PlacedLaunch>& launches = one.lowered.launches;
  if (launches.size() != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat(NameForMessages(program), ": want one launch, have ", launches.size()));
  }
  one.work = WorkOf(one.program, launches[0].nodes, target);
  return one;
}

int64_t RowsOf(const TypedGraph& program) {
  constexpr int64_t kFew = 64;
  std::optional<int64_t> rows;
  for (NodeId id = 0; id < program.size(); ++id) {
    const std::vector<NodeId>& inputs = program.inputs(id);
    const auto* scatter = As<ScatterAdd>(program.graph(), id);
    const std::optional<int> dim =
        inputs.empty() ? std::nullopt
                       : RowDimOf(program.op(id), program.type(inputs[0]).shape.size());
    if (scatter == nullptr && !dim.has_value()) continue;
    const int64_t extent =
        scatter != nullptr ? scatter->shape[0].size : program.type(inputs[0]).shape[*dim].size;
    rows = std::min(rows.value_or(extent), extent);
  }
  return std::max<int64_t>(rows.value_or(kFew), 1);
}

absl::StatusOr<std::shared_ptr<Module>> CompilePrograms(Binaries& binaries,
                                                        absl::Span<const TimedProgram> programs,
                                                        const CompileWatch& watch) {
  std::map<absl::string_view, absl::string_view> kernels;  // by symbol: definitions
  for (const TimedProgram& program : programs) {
    for (const auto& [symbol, definition] : program.lowered.kernels.kernels())
      kernels.emplace(symbol, definition);
  }
  KernelSource source;
  for (const auto& [symbol, definition] : kernels) source.Add(symbol, definition);
  std::string path;
  if (!source.empty()) {
    ASSIGN_OR_RETURN(const std::vector<absl::StatusOr<std::string>> paths,
                     binaries.Compile({&source, 1}, watch));
    ASSIGN_OR_RETURN(path, paths[0]);
  }
  ASSIGN_OR_RETURN(Binaries::Loaded loaded, binaries.Load(path, source));
  RETURN_IF_ERROR(loaded.status);
  return std::shared_ptr<Module>(std::move(loaded.module));
}

}  // namespace coconet
