#ifndef COCONET_JIT_COMPILE_PROCESS_H_
#define COCONET_JIT_COMPILE_PROCESS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coconet {

struct Command {
  std::vector<std::string> argv;         // argv[0]: the program's path
  std::string input;                     // its standard input
  std::vector<std::string> environment;  // "NAME=value", over this process's environment
  double time_limit_s = 120;
  size_t output_limit = 64 << 10;  // bytes of output that are kept
};

struct Finished {
  enum class How {
    kExited,    // `code` is the exit status
    kSignaled,  // `code` is the signal
    kTimedOut,  // killed at the time limit, with all its children
    kUnknown,   // somebody else (a handler of SIGCHLD, or SIG_IGN) took the status; the program has
                // ended
  };
  How how{};
  int code = 0;
  std::string output;  // the beginning of standard output and error together
};

/// Runs a program to its end, without a shell, and safely in a process with threads, with MPI, and
/// with handlers of its own for SIGCHLD. The program gets no file descriptor of this process, a
/// process group of its own, and default signal handling. Unavailable when it cannot be started.
absl::StatusOr<Finished> RunProcess(const Command& command);

/// The executable file that `name` means: itself when it holds a slash, else looked for on PATH; ""
/// when there is none.
std::string FindProgram(absl::string_view name);

}  // namespace coconet

#endif  // COCONET_JIT_COMPILE_PROCESS_H_
