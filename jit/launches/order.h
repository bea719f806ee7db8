#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "coconet/schedule/schedule.h"

namespace coconet {

/// Which of the collectives that a kernel could do alone are left to a library: none; those over
/// all ranks, if kernels reach the ranks of one node of several; all.
enum class LibraryDoes : uint8_t { kNone, kOverAllRanks, kAll };

/// Whether a library does the collective `id`, if it is alone in a launch.
bool DoneBy(LibraryDoes library, const TypedGraph& program, NodeId id);

/// The order in which launches run: the schedule's own if it has one. Else dependencies leave a
/// choice, which is by first node, or, if collectives run beside computation (`concurrent`),
/// collectives first and what waits for them late. Shorter than the launches if these wait for each
/// other in a cycle. Launches of an overlap, and of a bucket that `library` does, follow one
/// another.
std::vector<int> OrderOf(const Schedule& s, const Launches& launches, LibraryDoes library,
                         bool concurrent);

struct BucketedOrder {
  std::vector<int> order;
  std::vector<std::pair<int, int>> buckets;  // of more than one: places [first, last] in `order`
};

/// Puts AllReduces by a library, which are in no overlap and over no list (`each`, by node), into
/// buckets that are done together (Config::bucket). Returns `order`, a topological one, with the
/// AllReduces of each bucket one after the other, where its last one stands. A bucket ends when it
/// has `bytes`, and before a launch that needs one of its results, another collective, an AllReduce
/// of another kind, or an overlap.
BucketedOrder WithBuckets(const Schedule& s, const Launches& launches, LibraryDoes library,
                          const std::vector<bool>& each, int64_t bytes,
                          const std::vector<int>& order);

}  // namespace coconet
