#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "autotune/session/session.h"
#include "bench/probe/probe_lines.h"
#include "coconet/ir/graph.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "runtime/rank.h"

namespace coconet::bench {

/// What the first two fields of a line say.
struct ProbeProgram {
  Graph program;  // bound
  int ranks = 0, stages = 1, nodes = 0;
  SumOrder sum_order = SumOrder::kAny;
};

/// Reads the program and its sizes, which are spelt as flags of sweep without "--": those of its
/// symbols, and ranks, stages, nodes, dtype, preset and order. Files are relative to `folder`.
/// Errors name the field.
absl::StatusOr<ProbeProgram> LoadProbeProgram(const ProbeLine& line, const std::string& folder);

/// Collective. What configs may say on the ranks of this world.
absl::StatusOr<ConfigSpace> SpaceOfWorld(Rank& rank, SumOrder sum_order);

/// The GPUs of one machine that a program is compiled for on a machine without them.
struct AssumedGpus {
  std::string arch;  // "sm_90a"
  int gpus = 1;
};
struct AssumedWorld {
  ConfigSpace space;
  Target target;
};
/// The program's ranks there. InvalidArgument for numbers that do not make a world.
absl::StatusOr<AssumedWorld> WorldOn(const AssumedGpus& assumed, const ProbeProgram& program);

}  // namespace coconet::bench
