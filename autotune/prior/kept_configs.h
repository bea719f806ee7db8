#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "jit/config/config.h"

namespace coconet {

/// The most configs of a schedule that are tried.
inline constexpr size_t kKeptConfigs = 6;

/// The numbers of the configs of one schedule that are tried, at most `most`, ascending: those with
/// a short expected time, and among nearly equal ones those with values that no other kept config
/// has. All of them if there are no more. A pure function of its arguments.
std::vector<int> KeptConfigs(absl::Span<const Config> configs, absl::Span<const double> prior_us,
                             size_t most = kKeptConfigs);

}  // namespace coconet
