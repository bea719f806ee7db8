#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "coconet/testing/simulated_ranks.h"

namespace coconet {

/// A running kernel, with the results of its earlier phases.
struct RunningKernel {
  int launch = -1;
  std::map<std::pair<int, NodeId>, Number> scalars = {};  // by rank: folds and reductions of them
  std::set<NodeId> stored = {};                           // values that are in memory
};

/// Values that one task of a kernel on one rank needs, each computed once from what is in memory
/// now.
class KernelValues {
 public:
  KernelValues(SimulatedRanks& ranks, const RunningKernel& kernel, int rank)
      : ranks_(ranks), kernel_(kernel), rank_(rank) {}

  /// The value that an update or output stores.
  Number Of(NodeId id, int64_t index);

 private:
  Number Compute(NodeId id, int64_t index);
  Number Row(const Fold& fold, NodeId id, int64_t row);
  /// An element of a table on this rank; 0 if it has none.
  double Pooled(const EmbeddingBag& bag, NodeId id, int64_t index);
  Number Joined(const Concat& concat, NodeId id, int64_t index);
  Number TakenFrom(const Gather& gather, NodeId id, int64_t index);

  SimulatedRanks& ranks_;
  const RunningKernel& kernel_;
  const int rank_;
  std::map<std::pair<NodeId, int64_t>, Number> known_;
};

}  // namespace coconet
