#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coconet {

struct ProcessCommand {
  std::vector<std::string> argv;         // argv[0]: the program's path
  std::string input;                     // standard input
  std::vector<std::string> environment;  // "NAME=value", added to this process's environment
  double time_limit_s = 120;
  size_t output_limit = 64 << 10;           // bytes of output to keep
  const std::atomic<bool>* stop = nullptr;  // the program is killed once it is true; null: never
  bool foreground =
      false;  // stays in this process's group, so that Ctrl-C of its terminal reaches it
};

struct Finished {
  enum class How {
    kExited,    // `code` is the exit status
    kSignaled,  // `code` is the signal
    kTimedOut,  // killed at the time limit, with all its children
    kStopped,   // killed by Command::stop, likewise
    /// Ended, but other code (a SIGCHLD handler or SIG_IGN) took its status.
    kUnknown,
  };
  How how{};
  int code = 0;
  std::string output;  // the beginning of standard output and standard error, interleaved
};

/// Runs a program to its end, without a shell. Safe in a process with threads, MPI and SIGCHLD
/// handlers of its own. The program inherits no file descriptor of this process, and gets default
/// signal handling and, unless it is in the foreground, a process group of its own. Unavailable
/// when it cannot be started.
absl::StatusOr<Finished> RunProcess(const ProcessCommand& command);

}  // namespace coconet
