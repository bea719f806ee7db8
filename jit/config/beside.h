#ifndef COCONET_JIT_CONFIG_BESIDE_H_
#define COCONET_JIT_CONFIG_BESIDE_H_

#include <string>
#include <vector>

#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "jit/config/launch_shapes.h"

namespace coconet {

/// Whether Config::beside says something: an overlap of a matrix product has collectives that are
/// kernels' work, on the ranks of so many nodes.
bool CommunicatesBeside(const Schedule& s, Protocol protocol, int nodes);

/// Whether Config::tiles says something: each overlap has a product from which it goes on with a
/// kernel that communicates, on the ranks of so many nodes.
bool TakesTiles(const Schedule& s, Protocol protocol, int nodes);

/// What of Config::tiles is not legal; "" where it is.
std::string WhyNoTiles(const Config& config, const Schedule& s, int nodes);

/// Adds to the configs of a schedule, for GPUs, those whose collectives run beside products, where
/// there are any. Their `blocks` are of other kernels, and not varied: of configs that differ in
/// these, the first counts.
void AddBesides(const Schedule& s, const ConfigSpace& space, std::vector<Config>& configs);

/// Adds those whose products tell of each tile, with the protocol and the multicast of each of
/// `ways`: two blocks on each multiprocessor that the collectives beside them leave. These have
/// blocks that find room beside one of a product: its blocks last as long as it does, and where
/// they come first, few multiprocessors have none.
void AddTiles(const Schedule& s, const ConfigSpace& space, const std::vector<Config>& ways,
              const std::vector<LaunchShape>& shapes, std::vector<Config>& configs);

}  // namespace coconet

#endif  // COCONET_JIT_CONFIG_BESIDE_H_
