#pragma once

#include <functional>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "bench/harness/row.h"
#include "bench/probe/probe_lines.h"

namespace coconet::bench {

/// Hears of lines that run, in their order.
struct Listener {
  std::function<void()> begins = [] {};  // before a line runs
  std::function<void(const Row& row)> is_done;
};

struct Isolation {
  double line_seconds = 120;  // after which a line's process is ended
  std::function<bool()> interrupted = [] { return false; };
  std::function<void(const Row& row)> is_done;
};

/// Calls `run` in a child process with the lines, and again in a new one with those that have no
/// row when a child has ended: because a kernel's fault ended its GPU's context, it was killed, or
/// a line took too long, each of which is the error of the line that had begun. So one line does
/// not keep others from running. Must be called before this process has threads or a driver. Calls
/// `is_done` with a row for each line, in order; interrupted ones have an error.
void RunIsolated(absl::Span<const ProbeLine> lines,
                 absl::FunctionRef<void(absl::Span<const ProbeLine> lines, const Listener&)> run,
                 const Isolation& isolation);

}  // namespace coconet::bench
