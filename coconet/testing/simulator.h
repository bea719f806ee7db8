#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coconet/reference/interpreter.h"
#include "coconet/schedule/schedule.h"

namespace coconet {

/// Runs a bound schedule as its kernels would run, floats in double, on `ranks` ranks with memory
/// of their own: updates overwrite their states in place, values between steps go through memory,
/// slices that a rank does not hold are NaN there. Within a kernel the elements (where it folds
/// rows: the rows) of its phases on all ranks run one by one in an order drawn from `seed`,
/// constrained by nothing but the arrival of gathered elements, and by folds to scalars. So a
/// fusion or an order of steps that is not sound shows as a wrong result, sooner or later.
///
/// Results by name, as Interpreter::results: the elements that each rank ends up with. For Sliced
/// results, every rank's entry is the whole, put together from the slices. Ranks of all stages, on
/// nodes, as in Interpreter.
std::map<std::string, std::vector<std::vector<Number>>> Simulate(const Schedule& schedule,
                                                                 int ranks,
                                                                 const ElementSource& source,
                                                                 uint64_t seed, int stages = 1,
                                                                 int nodes = 1);

}  // namespace coconet
