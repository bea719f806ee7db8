#ifndef COCONET_BENCH_MPI_SETTINGS_H_
#define COCONET_BENCH_MPI_SETTINGS_H_

#include <string>
#include <vector>

#include "bench/launch.h"

namespace coconet::bench {

/// A way to set Open MPI up.
struct MpiSetting {
  std::string name;
  std::vector<MpiParameter> parameters;
};

/// The fixed list among which the baseline's best is looked for; the first are Open MPI's defaults.
/// `crowded`: more ranks than cores, where waiting ranks had better yield. `quick`: the defaults
/// and what is best most often.
std::vector<MpiSetting> MpiSettings(bool crowded, bool quick);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_MPI_SETTINGS_H_
