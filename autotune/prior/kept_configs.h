#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "jit/config/config.h"

namespace coconet {

/// How many configs of a schedule are tried, of those that there are.
inline constexpr size_t kKeptConfigs = 6;

/// Of the configs of one schedule, with the time that each is expected to take, the numbers of at
/// most `most` that are tried, ascending: those with a short time, and of nearly equal ones those
/// with values that no other has that is kept. All of them where they are no more. A pure function
/// of its arguments.
std::vector<int> KeptConfigs(absl::Span<const Config> configs, absl::Span<const double> prior_us,
                             size_t most = kKeptConfigs);

}  // namespace coconet
