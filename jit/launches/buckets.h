#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "coconet/schedule/schedule.h"
#include "jit/launches/cut.h"

namespace coconet {

/// Puts AllReduces by a library, which are in no overlap and over no list, into buckets that are
/// done together (Config::bucket).
class Buckets {
 public:
  /// The references outlive it. `each` by node, as in PlacedLaunches.
  Buckets(const Schedule& s, const Launches& launches, LibraryDoes library,
          const std::vector<bool>& each, int64_t bytes);

  /// `order`, a topological order of the launches, with the AllReduces of each bucket one after the
  /// other, in the place of its last one. A bucket ends when it has enough bytes, and before a
  /// launch that needs one of its results, another collective, an AllReduce of another kind, or an
  /// overlap.
  std::vector<int> Reordered(const std::vector<int>& order);
  /// The buckets of more than one AllReduce, as places [first, last] in what Reordered returned.
  std::vector<std::pair<int, int>> ranges() const { return ranges_; }

 private:
  /// The AllReduce of the launch; -1: it has none.
  NodeId AllReduceOf(int launch) const;
  bool JoinsOpen(NodeId reduce) const;
  void Close();

  const Schedule& s_;
  const Launches& launches_;
  const LibraryDoes library_;
  const std::vector<bool>& each_;
  const int64_t most_bytes_;
  std::set<NodeId> in_kernels_;
  std::set<NodeId> in_overlaps_;  // first nodes of launches
  std::vector<int> open_;         // launches of the bucket that has not ended
  std::vector<int> result_;
  int64_t bytes_ = 0;  // of the open bucket
  std::vector<std::pair<int, int>> ranges_;
};

}  // namespace coconet
