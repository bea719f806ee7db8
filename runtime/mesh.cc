#include "runtime/mesh.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// OK when each machine has `ranks` ranks with consecutive numbers.
absl::Status CheckMachines(const std::vector<int>& machines, int ranks) {
  for (int rank = 0; rank < static_cast<int>(machines.size()); ++rank) {
    const int want = rank - rank % ranks;
    if (machines[rank] == want) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("RunWorld: want each machine to have ", ranks,
                     " ranks with consecutive numbers, have rank ", rank,
                     " on the machine of rank ", machines[rank], ", not of rank ", want,
                     "; start as many on each, one machine after another (mpirun --map-by slot)"));
  }
  return absl::OkStatus();
}

absl::Status Indivisible(int ranks, int parts, const char* name) {
  return absl::InvalidArgumentError(
      absl::StrCat("RunWorld: ", ranks, " ranks do not make ", parts, " equal ", name));
}

}  // namespace

absl::StatusOr<Mesh> MeshOf(const WorldShape& shape, const std::vector<int>& machines) {
  const int size = static_cast<int>(machines.size());
  if (shape.stages < 1 || size % shape.stages != 0)
    return Indivisible(size, shape.stages, "stages");
  int machine_count = 0;
  for (int rank = 0; rank < size; ++rank) machine_count += machines[rank] == rank;
  RETURN_IF_ERROR(CheckMachines(machines, std::max(1, size / machine_count)));
  const int nodes = shape.nodes == 0 ? machine_count : shape.nodes;
  if (nodes < 1 || size % nodes != 0) return Indivisible(size, nodes, "nodes");
  if (nodes % machine_count != 0) {
    return absl::InvalidArgumentError(absl::StrCat("RunWorld: want a multiple of the ",
                                                   machine_count, " nodes that there are, have ",
                                                   nodes, " nodes"));
  }
  const int of_stage = size / shape.stages, of_node = size / nodes;
  if (of_stage % of_node != 0 && of_node % of_stage != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("RunWorld: want stages of whole nodes, or nodes of whole stages, have ",
                     of_stage, " ranks per stage and ", of_node, " per node"));
  }
  const int ranks = std::min(of_stage, of_node);
  return Mesh{.stages = shape.stages,
              .nodes = of_stage / ranks,
              .ranks = ranks,
              .stages_apart = shape.stages > 1 && nodes > 1};
}

Members GroupOf(const Mesh& mesh, Group group, int rank) {
  const int stage = rank - rank % mesh.stage_size();
  switch (group) {
    case Group::kStage:
      return {.first = stage, .stride = 1, .size = mesh.stage_size()};
    case Group::kNode:
      return {.first = rank - rank % mesh.ranks, .stride = 1, .size = mesh.ranks};
    case Group::kAcross:
      return {.first = stage + rank % mesh.ranks, .stride = mesh.ranks, .size = mesh.nodes};
  }
  CC_CHECK(false);
}

Members Column(const Mesh& mesh, int rank) {
  return {.first = rank % mesh.stage_size(), .stride = mesh.stage_size(), .size = mesh.stages};
}

Members SharingMemory(const Mesh& mesh, int rank) {
  const bool all = mesh.stages > 1 && !mesh.stages_apart;
  return all ? Members{.first = 0, .stride = 1, .size = mesh.size()}
             : GroupOf(mesh, Group::kNode, rank);
}

}  // namespace coconet
