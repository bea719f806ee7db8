#ifndef COCONET_JIT_BESIDE_H_
#define COCONET_JIT_BESIDE_H_

#include <vector>

#include "coconet/schedule.h"
#include "jit/config.h"

namespace coconet {

/// Whether Config::beside says something: an overlap of a matrix product has collectives that are kernels' work, on the ranks of so many nodes.
bool CommunicatesBeside(const Schedule& s, Protocol protocol, int nodes);

/// Adds to the configs of a schedule, for GPUs, those whose collectives run beside products, where there are any. Their `blocks` are of other
/// kernels, and not varied: of configs that differ in these, the first counts.
void AddBesides(const Schedule& s, const ConfigSpace& space, std::vector<Config>& configs);

}  // namespace coconet

#endif  // COCONET_JIT_BESIDE_H_
