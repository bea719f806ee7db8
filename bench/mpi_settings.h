#pragma once

#include <string>
#include <vector>

#include "bench/launch.h"

namespace coconet::bench {

/// A configuration of Open MPI.
struct MpiSetting {
  std::string name;
  std::vector<MpiParameter> parameters;
};

/// The list from which the baseline's best setting is chosen; Open MPI's defaults come first.
/// `crowded`: more ranks than cores, so that waiting ranks should yield. `quick`: only the defaults
/// and the most frequent winners.
std::vector<MpiSetting> MpiSettings(bool crowded, bool quick);

}  // namespace coconet::bench
