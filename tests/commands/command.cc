#include "tests/commands/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

std::string NewFiles() {
  static int count = 0;
  return absl::StrCat(testing::TempDir(), "/command_", getpid(), "_", count++);
}

/// Only what may be called between fork and exec.
void BecomeCommand(const std::string& out, const std::string& err, char* const* argv,
                   char* const* environment) {
  setpgid(0, 0);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  execvpe(argv[0], argv, environment);
  _exit(127);
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t Start(std::vector<std::string> argv, const std::map<std::string, std::string>& environment,
            const std::string& files) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    all[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  for (const auto& [name, value] : environment) all[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : all) entries.push_back(absl::StrCat(name, "=", value));
  const std::string out = files + ".out", err = files + ".err";
  const std::vector<char*> arguments = Pointers(argv), pointers = Pointers(entries);
  const pid_t pid = fork();
  CC_CHECK(pid >= 0);
  if (pid == 0) BecomeCommand(out, err, arguments.data(), pointers.data());
  setpgid(pid, pid);  // here too: a signal to the group may be sent before the child gets that far
  return pid;
}

/// What /proc/<pid>/stat says; a process that is gone, or waits to be reaped, has no parent.
struct ProcessInfo {
  std::string name;
  pid_t parent = 0;
};

ProcessInfo InfoOf(pid_t pid) {
  const std::string stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  const size_t open = stat.find('('), close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos) return {};
  std::istringstream rest(stat.substr(close + 1));
  char state = 'Z';
  ProcessInfo info{stat.substr(open + 1, close - open - 1)};
  rest >> state >> info.parent;
  if (state == 'Z') info.parent = 0;
  return info;
}

}  // namespace

Command::Command(std::vector<std::string> argv,
                 const std::map<std::string, std::string>& environment)
    : files_(NewFiles()), pid_(Start(std::move(argv), environment, files_)) {}

Command::~Command() {
  if (!waited_) Wait(0);
  std::filesystem::remove(files_ + ".out");
  std::filesystem::remove(files_ + ".err");
}

std::string Command::out() const { return ReadFile(files_ + ".out"); }
std::string Command::err() const { return ReadFile(files_ + ".err"); }

std::vector<pid_t> Command::Descendants(const std::string& name) const {
  std::map<pid_t, ProcessInfo> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0) all[pid] = InfoOf(pid);
  }
  std::vector<pid_t> family = {pid_}, found;
  for (size_t i = 0; i < family.size(); ++i) {
    for (const auto& [pid, info] : all) {
      if (info.parent != family[i]) continue;
      family.push_back(pid);
      if (info.name == name) found.push_back(pid);
    }
  }
  return found;
}

bool IsRunning(pid_t pid) { return InfoOf(pid).parent != 0; }

void Command::Signal(int signal) const { kill(pid_, signal); }

Ended Command::Wait(double limit_s) {
  CC_CHECK(!waited_);
  waited_ = true;
  int status = 0;
  const bool in_time = Eventually([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, limit_s);
  if (!in_time) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, &status, 0);
  }
  const int code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  return {in_time ? code : kTookTooLong, out(), err()};
}

Ended RunCommand(std::vector<std::string> argv,
                 const std::map<std::string, std::string>& environment) {
  return Command(std::move(argv), environment).Wait();
}

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  // No exception where reading fails, as of a process in /proc that ends meanwhile.
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void Sleep(double seconds) {
  const timespec time = {static_cast<time_t>(seconds),
                         static_cast<long>((seconds - static_cast<time_t>(seconds)) * 1e9)};
  nanosleep(&time, nullptr);
}

}  // namespace coconet
