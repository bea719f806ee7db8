#pragma once

#include <vector>

#include "coconet/schedule/schedule.h"

namespace coconet {

/// Cuts the tensors of a bound schedule's list into batches that an overlap works on one after the
/// other: `batches` of them, or as many as there are tensors. Batches have about as much work and
/// as many bytes to move, on each rank; of three or more, two have half as much, so that little is
/// computed before anything is moved, or little is moved after everything is computed. Those with
/// little work before much to move come first, those with much work before little to move last. A
/// batch's tensors ascend. Deterministic.
std::vector<std::vector<int>> BatchesOf(const Schedule& s, const std::vector<NodeId>& overlap,
                                        int ranks, int batches);

}  // namespace coconet
