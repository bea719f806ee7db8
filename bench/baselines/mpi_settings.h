#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/finding.h"
#include "bench/harness/launch.h"
#include "bench/harness/row.h"

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

/// What a short run with a setting has shown of the baseline.
struct MpiTrial {
  MpiSetting setting;
  double us = 0;
  std::string form = {};  // the baseline's fastest
};
/// Sets the row's "mpi_settings_tried" to all trials, of which the defaults come first, and keeps
/// the defaults and the fastest others, `most` together: one bad trial must not decide.
void KeepFastest(std::vector<MpiTrial>& trials, size_t most, Row& row);

struct SettingFindings {
  std::string setting;
  std::vector<Finding> found;
};

/// Runs `arguments` as a worker of `processes` ranks with each of the quick settings, and returns
/// the findings of the one with which side "baseline" is fastest. The first run tunes, the others
/// find its record in a cache in `scratch`. A setting that fails after another worked is left out;
/// else errors as of RunWorker.
absl::StatusOr<SettingFindings> RunWithBestSetting(int processes,
                                                   const std::vector<std::string>& arguments,
                                                   const std::string& scratch);

}  // namespace coconet::bench
