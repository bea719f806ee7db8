#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/harness/finding.h"
#include "bench/harness/row.h"

namespace coconet::bench {

/// A configuration of Open MPI, and what a run with it has shown.
struct MpiSetting {
  std::string name;
  std::string parameters;           // as Launch has them
  double us = 0;                    // of the baseline
  std::string form = {};            // the baseline's fastest
  std::vector<Finding> found = {};  // all findings
};

/// The list from which the baseline's best setting is chosen; Open MPI's defaults come first.
/// `crowded`: more ranks than cores, so that waiting ranks should yield. `quick`: only the defaults
/// and the most frequent winners.
std::vector<MpiSetting> MpiSettings(bool crowded, bool quick);

/// Runs `arguments` as a worker of `processes` ranks with each setting. The first run tunes, the
/// others find its record in a cache in `scratch`. A setting that fails after another worked is
/// left out; else errors as of RunWorker.
absl::StatusOr<std::vector<MpiSetting>> TrySettings(std::vector<MpiSetting> settings, int processes,
                                                    const std::vector<std::string>& arguments,
                                                    const std::string& scratch);
/// The setting with which the baseline was fastest.
const MpiSetting& FastestOf(const std::vector<MpiSetting>& tried);
/// Sets the row's "mpi_settings_tried" to all settings, of which the defaults come first, and keeps
/// the defaults and the fastest others, `most` together: one bad trial must not decide.
void KeepFastest(std::vector<MpiSetting>& tried, size_t most, Row& row);

}  // namespace coconet::bench
