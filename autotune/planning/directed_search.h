#pragma once

#include "autotune/planning/plan_graph.h"
#include "autotune/planning/plan_search.h"

namespace coconet {

/// The default search. A plan is constructed (first_plan.h), then changed by moves at groups of the
/// critical path, sometimes at others: a kernel joins a neighbour, or a part leaves it, in one
/// place or in all equivalent ones; a bucket joins the next, is cut, or gives a collective to a
/// neighbour; a kernel or a bucket moves in its lane; a bucket changes its lane; lanes are ordered
/// anew. A change is accepted while the time is within a thousandth of the best (record-to-record
/// travel: Dueck, J. Comput. Phys. 1993). Each is simulated from the first step that differs to the
/// first state that is as before (two_lanes.h).
void SearchDirected(const PlanGraph& graph, PlanRecord& record);

}  // namespace coconet
