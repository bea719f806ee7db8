#pragma once

#include <string>
#include <vector>

namespace coconet {

/// The commands, by their arguments without the program's name; return the process's exit status.
/// They print to stdout and stderr. `RunSweep` takes SIGINT and SIGTERM, which end tuning.
int RunSweep(const std::vector<std::string>& args);
int RunCache(const std::vector<std::string>& args);

}  // namespace coconet
