#include "bench/harness/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
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
  std::vector<std::string> environment = launch.environment;
  if (geteuid() == 0) {
    environment.insert(environment.end(),
                       {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    const auto same = [&](absl::string_view other) {
      return absl::StartsWith(other, absl::StrCat(name, "="));
    };
    if (std::none_of(environment.begin(), environment.end(), same))
      environment.emplace_back(*entry);
  }
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// The last lines of a file.
std::string TailOf(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  constexpr size_t kTail = 2000;
  const std::string all(absl::StripAsciiWhitespace(text.str()));
  return all.size() <= kTail ? all : absl::StrCat("... ", all.substr(all.size() - kTail));
}

/// Runs the program and returns its exit status as waitpid does. The program stays in our process
/// group, so that Ctrl-C reaches it and mpirun ends its ranks. Meanwhile we ignore Ctrl-C, as
/// system() does, so that the caller can clean up.
absl::StatusOr<int> RunToEnd(std::vector<std::string> line, std::vector<std::string> environment,
                             const std::string& log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const absl::Cleanup destroy_actions = [&] { posix_spawn_file_actions_destroy(&actions); };
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const absl::Cleanup destroy_attributes = [&] { posix_spawnattr_destroy(&attributes); };
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &interrupt);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignore, &before);
  const absl::Cleanup restore = [&] { sigaction(SIGINT, &before, nullptr); };
  pid_t pid = 0;
  const int error = posix_spawn(&pid, line[0].c_str(), &actions, &attributes, Pointers(line).data(),
                                Pointers(environment).data());
  if (error != 0)
    return absl::UnavailableError(absl::StrCat("start ", line[0], ": ", std::strerror(error)));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR)
      return absl::UnavailableError(absl::StrCat("wait for ", line[0], ": ", std::strerror(errno)));
  }
  return status;
}

}  // namespace

absl::StatusOr<std::vector<Finding>> RunWorker(const Launch& launch) {
  const std::string out = absl::StrCat(launch.scratch, "/found"),
                    log = absl::StrCat(launch.scratch, "/log");
  unlink(out.c_str());
  ASSIGN_OR_RETURN(std::vector<std::string> line, CommandLine(launch, out));
  ASSIGN_OR_RETURN(const int status, RunToEnd(std::move(line), Environment(launch), log));
  constexpr int kInterrupted = 128 + SIGINT;
  if ((WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) ||
      (WIFEXITED(status) && WEXITSTATUS(status) == kInterrupted)) {
    return absl::CancelledError("interrupted");
  }
  constexpr int kCannot = 77;
  if (!launch.launcher.empty() && WIFEXITED(status) && WEXITSTATUS(status) == kCannot)
    return absl::UnavailableError(TailOf(log));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError(absl::StrCat("worker: ",
                                            WIFEXITED(status)
                                                ? absl::StrCat("exit code ", WEXITSTATUS(status))
                                                : strsignal(WTERMSIG(status)),
                                            ": ", TailOf(log)));
  }
  return ReadFindings(out);
}

}  // namespace coconet::bench
