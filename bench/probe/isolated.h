#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bench/probe/probe_result.h"

namespace coconet::bench {

/// What a child process tells its parent.
class Teller {
 public:
  explicit Teller(int pipe) : pipe_(pipe) {}
  void Begins(int line);
  void IsDone(const ProbeResult& result);

 private:
  void Send(char kind, absl::string_view bytes);
  const int pipe_;
};

struct Isolation {
  double line_seconds = 120;  // after which a line's process is ended
  std::function<bool()> interrupted;
  std::function<void(const ProbeResult&)> is_done;  // may be empty
};

/// Calls `run` in a child process with the numbers of lines, and again in a new one with those that
/// have no result when a child has ended: because a kernel's fault ended its GPU's context, it was
/// killed, or a line took too long, each of which is the error of the line that had begun. So one
/// line does not keep others from running. Must be called before this process has threads or a
/// driver. Returns a result for each line, in order; interrupted ones have an error.
std::vector<ProbeResult> RunIsolated(
    const std::vector<int>& lines,
    absl::FunctionRef<void(const std::vector<int>& lines, Teller& teller)> run,
    const Isolation& isolation);

}  // namespace coconet::bench
