#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/probe/probe_group.h"
#include "bench/probe/probe_lines.h"
#include "bench/probe/probe_program.h"
#include "bench/probe/probe_result.h"
#include "runtime/world.h"

namespace coconet::bench {

/// Runs lines in this process, those of one program and sizes that follow one another in one world.
/// `options.is_done` gets a result for each, but for those after an error that ends the process's
/// GPU or world; then that of the line that had begun is its error, and the call returns.
void RunLines(absl::Span<const ProbeLine> lines, const std::string& folder, Backend backend,
              const ProbeOptions& options);

/// Compiles what running the lines takes, for GPUs that need not be here, into `cubins`. Calls
/// `report` with a line of text for each. Baselines have no kernels. Returns how many lines failed.
absl::StatusOr<int> CompileLines(absl::Span<const ProbeLine> lines, const std::string& folder,
                                 const AssumedGpus& gpus, const std::string& cubins,
                                 const std::function<bool()>& interrupted,
                                 const std::function<void(absl::string_view)>& report);

}  // namespace coconet::bench
