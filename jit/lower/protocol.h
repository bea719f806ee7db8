#pragma once

#include <string>

#include "jit/config/config.h"
#include "jit/launches/placed_launches.h"

namespace coconet {

/// How the launches communicate: Lowered::protocol.
std::string ProtocolOf(const PlacedLaunches& u, const Config& config);

}  // namespace coconet
