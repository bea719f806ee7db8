#include "bench/harness/launch.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "coconet/base/env.h"
#include "coconet/base/status.h"
#include "jit/compile/process.h"

namespace coconet::bench {
namespace {

/// A copy of this program: its file may be rebuilt before all workers have run.
absl::StatusOr<std::string> CopyOfSelf(const std::string& folder) {
  const std::string copy = absl::StrCat(folder, "/worker");
  std::error_code error;
  if (!std::filesystem::exists(copy, error))
    std::filesystem::copy_file("/proc/self/exe", copy, error);
  if (error)
    return absl::UnavailableError(
        absl::StrCat("copy this program to ", copy, ": ", error.message()));
  return copy;
}

absl::StatusOr<std::vector<std::string>> CommandLine(const Launch& launch, const std::string& out) {
  std::string program = launch.program;
  if (program.empty()) {
    ASSIGN_OR_RETURN(program, CopyOfSelf(launch.scratch));
  }
  std::vector<std::string> line = launch.launcher;
  if (line.empty() && launch.processes > 0) {
    line = {FindProgram("mpirun"),
            "-n",
            absl::StrCat(launch.processes),
            "--oversubscribe",
            "--bind-to",
            "none",
            "--timeout",
            absl::StrCat(static_cast<int>(launch.time_limit_s))};
    if (line[0].empty()) return absl::UnavailableError("mpirun: not on PATH; run setup.sh");
    for (const auto& [name, value] : launch.parameters)
      line.insert(line.end(), {"--mca", name, value});
  }
  line.push_back(program);
  line.insert(line.end(), launch.arguments.begin(), launch.arguments.end());
  line.push_back(absl::StrCat("--out=", out));
  return line;
}

std::vector<std::string> Environment(const Launch& launch) {
  std::vector<std::string> environment;
  if (!launch.cache.empty())
    environment.push_back(absl::StrCat("COCONET_CACHE_DIR=", launch.cache));
  if (geteuid() == 0) {
    environment.insert(environment.end(),
                       {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
  }
  return environment;
}

/// The last lines of an output.
std::string TailOf(absl::string_view output) {
  output = absl::StripAsciiWhitespace(output);
  constexpr size_t kTail = 2000;
  return output.size() <= kTail ? std::string(output)
                                : absl::StrCat("... ", output.substr(output.size() - kTail));
}

/// Runs a command to its end. Ctrl-C reaches it, and mpirun then ends its ranks. Meanwhile we
/// ignore Ctrl-C, as system() does, so that the caller can clean up.
absl::StatusOr<Finished> RunToEnd(const ProcessCommand& command) {
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignore, &before);
  const absl::Cleanup restore = [&] { sigaction(SIGINT, &before, nullptr); };
  return RunProcess(command);
}

}  // namespace

absl::StatusOr<std::vector<Finding>> RunWorker(const Launch& launch) {
  const std::string out = absl::StrCat(launch.scratch, "/found");
  unlink(out.c_str());
  ASSIGN_OR_RETURN(std::vector<std::string> line, CommandLine(launch, out));
  ASSIGN_OR_RETURN(const Finished done, RunToEnd({.argv = std::move(line),
                                                  .input = {},
                                                  .environment = Environment(launch),
                                                  .time_limit_s = 1e6,
                                                  .output_limit = 64 << 20,
                                                  .foreground = true}));
  const bool exited = done.how == Finished::How::kExited;
  constexpr int kInterrupted = 128 + SIGINT, kCannot = 77;
  if (done.code == (exited ? kInterrupted : SIGINT)) return absl::CancelledError("interrupted");
  if (!launch.launcher.empty() && exited && done.code == kCannot)
    return absl::UnavailableError(TailOf(done.output));
  if (!exited || done.code != 0) {
    return absl::InternalError(absl::StrCat(
        "worker: ", exited ? absl::StrCat("exit code ", done.code) : strsignal(done.code), ": ",
        TailOf(done.output)));
  }
  return ReadFindings(out);
}

}  // namespace coconet::bench
