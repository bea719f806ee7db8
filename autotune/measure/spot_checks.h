#ifndef COCONET_AUTOTUNE_MEASURE_SPOT_CHECKS_H_
#define COCONET_AUTOTUNE_MEASURE_SPOT_CHECKS_H_

#include <cstdint>
#include <set>
#include <string>

#include "coconet/ir/graph.h"

namespace coconet {

/// Returns the results, by TensorName, that are not checked at the program's size: for a program
/// over a long list of tensors, results that sum over the elements of their tensor, which would
/// take the interpreter minutes. One tensor per size, which the seed picks, is checked
/// nevertheless. Empty for small programs, and for programs without a list.
std::set<std::string> NotSpotChecked(const Graph& program, uint64_t seed);

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_MEASURE_SPOT_CHECKS_H_
