#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "jit/config/config.h"

namespace coconet {

/// The number of members of Config, and how many of them, from the first on, most variants set.
inline constexpr size_t kConfigMembers = 23, kUsuallySet = 6;

/// All members of a config in their order, as numbers.
std::array<int64_t, kConfigMembers> ValuesOf(const Config& config);

}  // namespace coconet
