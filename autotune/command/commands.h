#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "autotune/command/console/flag_help.h"

namespace coconet {

/// The commands, by their arguments without the program's name; return the process's exit status.
/// They print to stdout and stderr. `RunSweep` and `RunPlan` take SIGINT and SIGTERM, which end
/// tuning and planning.
int RunSweep(const std::vector<std::string>& args);
int RunPlan(const std::vector<std::string>& args);
int RunCache(const std::vector<std::string>& args);
int RunReport(const std::vector<std::string>& args);

/// `coconet`: the commands above by their names, completion, help and --version.
int RunCoconet(const std::vector<std::string>& args);

/// What `cache --help` prints.
absl::string_view CacheHelp();
/// The flags of `report`.
std::vector<FlagHelp> ReportFlagHelp();

}  // namespace coconet
