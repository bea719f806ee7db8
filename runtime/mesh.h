#ifndef COCONET_RUNTIME_MESH_H_
#define COCONET_RUNTIME_MESH_H_

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan.h"

namespace coconet {

/// How the ranks of a world lie: in pipeline stages (usually one), which collectives span; a
/// stage's on nodes, whose ranks share memory. A rank's number in the world is (stage * nodes +
/// node) * ranks + local.
struct Mesh {
  int stages = 1;
  int nodes = 1;  // of a stage
  int ranks = 1;  // of a node of a stage
  bool stages_apart =
      false;  // stages are on different nodes; else ranks share memory with those of all stages
  int stage_size() const { return nodes * ranks; }
  int size() const { return stages * stage_size(); }
  bool operator==(const Mesh&) const = default;
};

/// What a user asks for.
struct WorldShape {
  int stages = 1;
  int nodes =
      0;  // of the world; 0: as many as there are. More of them: nodes are cut into virtual ones
};

/// The mesh of a world; `machines[rank]`: the lowest rank on the machine that `rank` is on.
/// InvalidArgument when the shape does not divide the ranks, and FailedPrecondition when the ranks
/// do not lie so: alike on all machines, machine by machine.
absl::StatusOr<Mesh> MeshOf(const WorldShape& shape, const std::vector<int>& machines);

/// World ranks first, first + stride, ...: `size` of them.
struct Members {
  int first = 0, stride = 1, size = 1;
  int Rank(int index) const { return first + index * stride; }
  int Index(int rank) const { return (rank - first) / stride; }
  bool operator==(const Members&) const = default;
};

/// The group of each kind that `rank` is in.
Members GroupOf(const Mesh& mesh, Group group, int rank);

/// Those that have `rank`'s place in each of the stages.
Members Column(const Mesh& mesh, int rank);

/// Those that share memory with `rank`: its node's, of all stages that are there.
Members SharingMemory(const Mesh& mesh, int rank);

}  // namespace coconet

#endif  // COCONET_RUNTIME_MESH_H_
