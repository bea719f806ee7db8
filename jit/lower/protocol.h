#pragma once

#include <string>

#include "jit/config/config.h"
#include "jit/config/units.h"

namespace coconet {

/// How the units communicate: Lowered::protocol.
std::string ProtocolOf(const Units& u, const Config& config);

}  // namespace coconet
