#include "jit/compile/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/descriptor.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

using Clock = std::chrono::steady_clock;

absl::Status CannotStart(const ProcessCommand& command, int error) {
  return absl::UnavailableError(
      absl::StrCat("start ", command.argv[0], ": ", std::strerror(error)));
}

/// A copy of `fd` above the three descriptors that the child redirects, so that no redirection
/// overwrites the source of another.
absl::StatusOr<Descriptor> AboveStandard(const ProcessCommand& command, Descriptor fd) {
  if (!fd) return CannotStart(command, errno);
  Descriptor high(fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!high) return CannotStart(command, errno);
  return high;
}

/// The input as a file in memory: unlike a pipe, it needs no thread or loop that feeds it.
absl::StatusOr<Descriptor> InputFile(const ProcessCommand& command) {
  ASSIGN_OR_RETURN(Descriptor file,
                   AboveStandard(command, Descriptor(memfd_create("coconet-input", MFD_CLOEXEC))));
  if (!WriteAll(file, command.input) || lseek(file.get(), 0, SEEK_SET) != 0)
    return CannotStart(command, errno);
  return file;
}

std::vector<std::string> Environment(const std::vector<std::string>& over) {
  std::vector<std::string> all = over;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const absl::string_view name = text.substr(0, text.find('='));
    const auto same = [&](absl::string_view other) {
      return other.substr(0, other.find('=')) == name;
    };
    if (std::none_of(over.begin(), over.end(), same)) all.emplace_back(text);
  }
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// By posix_spawn, which runs no fork handlers and copies no page tables, however
/// large the process.
absl::StatusOr<pid_t> Spawn(const ProcessCommand& command, const Descriptor& input,
                            const Descriptor& output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const absl::Cleanup destroy_actions = [&] { posix_spawn_file_actions_destroy(&actions); };
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  const absl::Cleanup destroy_attributes = [&] { posix_spawnattr_destroy(&attributes); };
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int group = command.foreground ? 0 : POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(
      &attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));

  std::vector<std::string> argv = command.argv, environment = Environment(command.environment);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0].c_str(), &actions, &attributes, Pointers(argv).data(),
                                Pointers(environment).data());
  if (error != 0) return CannotStart(command, error);
  return pid;
}

bool IsStopped(const ProcessCommand& command) { return command.stop != nullptr && *command.stop; }

/// True when the child has ended, even if other code has taken its status.
bool HasEnded(pid_t pid) {
  siginfo_t info = {};
  if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    return errno == ECHILD;
  return info.si_pid == pid;
}

/// Reads the output of the child and its children until all have closed the pipe, or the child has
/// ended and processes that it left behind are silent, or the deadline passes.
std::string ReadOutput(pid_t pid, const Descriptor& pipe, Clock::time_point deadline,
                       const ProcessCommand& command) {
  std::string output;
  for (char buffer[4096]; Clock::now() < deadline && !IsStopped(command);) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wanted = {pipe.get(), POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 100)));
    if (ready == 0 && HasEnded(pid)) break;
    if (ready <= 0) continue;
    const ssize_t n = read(pipe.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    output.append(buffer, std::min(static_cast<size_t>(n), command.output_limit - output.size()));
  }
  return output;
}

/// Waits for the child until the deadline or ProcessCommand::stop, then kills its process group,
/// or only the child in the foreground.
Finished Reap(pid_t pid, Clock::time_point deadline, const ProcessCommand& command) {
  using How = Finished::How;
  bool killed = false;
  How why = How::kTimedOut;
  for (auto nap = std::chrono::microseconds(50);;
       nap = std::min(2 * nap, std::chrono::microseconds(5000))) {
    int status = 0;
    const pid_t done = waitpid(pid, &status, killed ? 0 : WNOHANG);
    if (done < 0 && errno == EINTR) continue;
    if (done != 0 && killed) return {why, 0, {}};
    if (done < 0) return {How::kUnknown, 0, {}};
    if (done == pid && WIFSIGNALED(status)) return {How::kSignaled, WTERMSIG(status), {}};
    if (done == pid) return {How::kExited, WEXITSTATUS(status), {}};
    if (Clock::now() >= deadline || IsStopped(command)) {
      if (IsStopped(command)) why = How::kStopped;
      kill(command.foreground ? pid : -pid, SIGKILL);
      killed = true;
    } else {
      std::this_thread::sleep_for(nap);
    }
  }
}

}  // namespace

absl::StatusOr<Finished> RunProcess(const ProcessCommand& command) {
  const std::chrono::duration<double> limit(std::clamp(command.time_limit_s, 0.0, 1e6));
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  ASSIGN_OR_RETURN(Descriptor input, InputFile(command));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return CannotStart(command, errno);
  const Descriptor reader(ends[0]);
  ASSIGN_OR_RETURN(Descriptor writer, AboveStandard(command, Descriptor(ends[1])));
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(command, input, writer));
  writer.Close();
  std::string output = ReadOutput(pid, reader, deadline, command);
  Finished finished = Reap(pid, deadline, command);
  finished.output = std::move(output);
  return finished;
}

}  // namespace coconet
