#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coconet/reference/evaluation.h"

namespace coconet {

/// The nodes whose elements are computed once and kept, where most elements of all results are
/// asked for: folds, products and look-ups that others of them depend on, their operands, and what
/// several nodes need on the way there. Without it a block of elements computes anew what an
/// earlier one computed: of a recurrence of T steps, T times. Empty if these values have more than
/// `most` elements, of all ranks that one evaluates for.
std::vector<bool> WholeNodes(const Evaluated& e, int64_t most);

/// Computes all elements of a node, and keeps them in EvaluationCache::whole.
std::unique_ptr<EvaluationJob> NewWholeJob(const Evaluated& e, EvaluationCache& cache, NodeId node,
                                           int rank);

/// Elements of the values of a node.
Bounded ElementsOf(const Bounded& whole, const std::vector<int64_t>& elements);

}  // namespace coconet
