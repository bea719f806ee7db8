#pragma once

#include <vector>

#include "coconet/schedule/schedule.h"

namespace coconet {

/// Cuts the tensors of a bound schedule's list into batches that an overlap works on one after the
/// other: `batches` of them, or as many as there are tensors. All batches have about as much work
/// and as many bytes to move, on each rank; those with little work before much to move come first,
/// those with much work before little to move last. A batch's tensors ascend. Deterministic.
std::vector<std::vector<int>> BatchesOf(const Schedule& s, const std::vector<NodeId>& overlap,
                                        int ranks, int batches);

}  // namespace coconet
