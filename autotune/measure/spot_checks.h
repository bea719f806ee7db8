#ifndef COCONET_AUTOTUNE_MEASURE_SPOT_CHECKS_H_
#define COCONET_AUTOTUNE_MEASURE_SPOT_CHECKS_H_

#include <cstdint>
#include <set>
#include <string>

#include "coconet/ir/graph.h"

namespace coconet {

/// Of a program over a list, results that need not be checked at their real size, by TensorName:
/// those that sum over the elements of their tensor, which would take the interpreter minutes for a
/// model, except of one tensor of each size, which the seed picks. Empty for a program that is
/// small, or is over no list, and of results with a total over all tensors.
std::set<std::string> NotSpotChecked(const Graph& program, uint64_t seed);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_MEASURE_SPOT_CHECKS_H_
