#pragma once

#include "autotune/planning/plan_graph.h"
#include "autotune/planning/plan_search.h"

namespace coconet {

/// DisCo's search (Yi et al.: Optimizing DNN Compilation for Distributed Training With Joint OP and
/// Tensor Fusion, TPDS 33(12), 2022, Algorithm 1). A queue of plans, the best first, begins with
/// the plain one. Each method changes the best plan by 0 to beta moves at random places: a kernel
/// joins one that it takes from; a collective joins a neighbour in the order of gradients. A plan
/// that is within alpha times the best is queued; `patience` plans in a row without an improvement
/// end the search. As in the paper, computation is a FIFO queue of ready groups, and so is the one
/// channel of communication.
///
/// The paper's third method, fusion with duplication, is not among the moves: it makes another
/// program here (copies.h).
void SearchBacktracking(const PlanGraph& graph, PlanRecord& record);

}  // namespace coconet
