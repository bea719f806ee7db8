#include "bench/probe/probe_program.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "autotune/command/sweep_flags.h"
#include "autotune/command/sweep_program.h"
#include "autotune/session/key.h"
#include "coconet/base/status.h"
#include "coconet/ir/infer.h"
#include "coconet/schedule/schedule.h"
#include "runtime/mesh.h"

namespace coconet::bench {
namespace {

/// Flags of sweep that are sizes.
constexpr absl::string_view kSettings[] = {"ranks", "stages", "nodes", "dtype", "preset", "order"};

absl::StatusOr<std::vector<std::string>> ArgumentsOf(const ProbeLine& line) {
  std::vector<std::string> arguments = {line.program};
  ASSIGN_OR_RETURN(const auto words, ParseWords(line.sizes));
  for (const auto& [name, value] : words) {
    if (!absl::c_linear_search(kSettings, name) && IsSweepFlag(name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", name, "' is no size, but a flag of sweep; want sizes of the program's symbols, ",
          absl::StrJoin(kSettings, ", ")));
    }
    arguments.push_back(absl::StrCat("--", name, "=", value));
  }
  return arguments;
}

/// The program, bound and canonical.
absl::StatusOr<Graph> Bound(SweepFlags& flags, const ProbeProgram& world) {
  ASSIGN_OR_RETURN(const Graph program, LoadSweepProgram(flags));
  ASSIGN_OR_RETURN(const Graph bound, BindSizes(program, flags.sizes));
  RETURN_IF_ERROR(CheckRuns(bound, world.ranks / world.stages));
  ASSIGN_OR_RETURN(const Schedule schedule, InitialSchedule(bound));
  return schedule.graph();
}

}  // namespace

absl::StatusOr<ProbeProgram> LoadProbeProgram(const ProbeLine& line, const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> arguments = ArgumentsOf(line);
  if (!arguments.ok()) return WithContext(arguments.status(), "sizes");
  absl::StatusOr<SweepFlags> flags = ParseSweepFlags(*arguments, folder);
  if (!flags.ok()) return WithContext(flags.status(), "sizes");
  ProbeProgram made;
  made.stages = flags->stages;
  made.nodes = flags->nodes;
  made.sum_order = flags->sum_order;
  // A module in HLO is for so many ranks.
  const bool says_ranks = flags->ranks > 0;
  made.ranks = says_ranks ? flags->ranks : std::max(kDefaultRanks, flags->stages);
  if (made.ranks % made.stages != 0) {
    return absl::InvalidArgumentError(absl::StrCat("sizes: want ranks a multiple of stages, have ",
                                                   made.ranks, " and ", made.stages));
  }
  absl::StatusOr<Graph> program = Bound(*flags, made);
  if (!program.ok()) {
    const bool of_flag = absl::StrContains(program.status().message().substr(0, 8), "--");
    return WithContext(program.status(), of_flag ? "sizes" : "program");
  }
  if (flags->ranks > 0) made.ranks = flags->ranks;
  made.program = *std::move(program);
  return made;
}

absl::StatusOr<ConfigSpace> SpaceOfWorld(Rank& rank, SumOrder sum_order) {
  ASSIGN_OR_RETURN(const std::vector<std::string> all,
                   rank.exchange().AllGather(Encode(rank.topology())));
  std::vector<Topology> topologies;
  for (const std::string& theirs : all) {
    ASSIGN_OR_RETURN(topologies.emplace_back(), DecodeTopology(theirs));
  }
  return SpaceOf(topologies, rank.mesh(), sum_order);
}

absl::StatusOr<AssumedWorld> WorldOn(const AssumedGpus& assumed, const ProbeProgram& program) {
  constexpr int kNewest = 148, kHopper = 132, kAmpere = 108;  // B200, H100 and H200, A100
  int number = 0;
  absl::string_view digits = assumed.arch;
  const bool has_prefix = absl::ConsumePrefix(&digits, "sm_");
  while (!digits.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(digits.back())))
    digits.remove_suffix(1);
  if (!has_prefix || !absl::SimpleAtoi(digits, &number))
    return absl::InvalidArgumentError(absl::StrCat("want sm_90a or the like, have ", assumed.arch));
  ASSIGN_OR_RETURN(const Mesh mesh, MeshOf({.stages = program.stages, .nodes = program.nodes},
                                           std::vector<int>(program.ranks, 0)));
  Topology topology;
  topology.arch = assumed.arch;
  topology.ranks_per_node = mesh.ranks;
  topology.bulk_copies = number >= 90;
  topology.warp_groups = assumed.arch == "sm_90a";
  topology.multiprocessors = number >= 100 ? kNewest : number >= 90 ? kHopper : kAmpere;
  topology.ranks_per_gpu = (program.ranks + assumed.gpus - 1) / assumed.gpus;
  topology.staged = topology.ranks_per_gpu > 1;
  topology.library = topology.staged ? "staged" : "nccl";
  return AssumedWorld{SpaceOf({topology}, mesh, program.sum_order),
                      Target(mesh.stage_size(), mesh.nodes, mesh.stages, mesh.stages_apart)};
}

}  // namespace coconet::bench
