#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan.h"

namespace coconet {

/// The arrangement of a world's ranks. Ranks form `stages` pipeline stages; collectives span one
/// stage. The ranks of a stage lie on `nodes` nodes, whose ranks share memory. World rank = (stage
/// * nodes + node) * ranks + local.
struct Mesh {
  int stages = 1;
  int nodes = 1;  // per stage
  int ranks = 1;  // per node of a stage
  /// True: each stage has nodes of its own. False: all stages share one machine's memory.
  bool stages_apart = false;
  int stage_size() const { return nodes * ranks; }
  int size() const { return stages * stage_size(); }
  bool operator==(const Mesh&) const = default;
};

/// The user's request.
struct WorldShape {
  int stages = 1;
  /// Nodes of the world. 0: one per machine; more than machines: each machine is cut
  /// into virtual nodes.
  int nodes = 0;
};

/// The world that a backend is asked for.
struct WorldRequest {
  int ranks = 1;  // threads of this process; under an MPI launcher its processes count instead
  WorldShape shape = {};
  double timeout_s = 60;  // deadline of one wait for a peer
  bool pin = true;        // each rank to a core of its own, as far as there are any
};

/// The mesh of a world. `machines[rank]`: the lowest rank on the machine of `rank`. InvalidArgument
/// when the shape does not divide the ranks; FailedPrecondition unless every machine has the same
/// number of ranks, with consecutive numbers.
absl::StatusOr<Mesh> MeshOf(const WorldShape& shape, const std::vector<int>& machines);

/// The world ranks first, first + stride, ..., first + (size - 1) * stride.
struct Members {
  int first = 0, stride = 1, size = 1;
  int Rank(int index) const { return first + index * stride; }
  int Index(int rank) const { return (rank - first) / stride; }
  bool operator==(const Members&) const = default;
};

/// The group of kind `group` that contains `rank`.
Members GroupOf(const Mesh& mesh, Group group, int rank);

/// The ranks at `rank`'s place in every pipeline stage.
Members Column(const Mesh& mesh, int rank);

/// The ranks that share memory with `rank`: its node, over all pipeline stages on that machine.
Members SharingMemory(const Mesh& mesh, int rank);

}  // namespace coconet
