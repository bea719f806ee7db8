#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace coconet {

/// How a command ended.
struct Ended {
  int code = 0;  // exit code; -signal; kTookTooLong
  std::string out, err;
};
inline constexpr int kTookTooLong = -1000;

/// A command that runs, as a user starts it, in a process group of its own. What is left of the
/// group ends with the object.
class Command {
 public:
  /// `argv[0]` is looked for on PATH; `environment` goes over this process's.
  explicit Command(std::vector<std::string> argv,
                   const std::map<std::string, std::string>& environment = {});
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();

  pid_t pid() const { return pid_; }
  /// What it has written so far.
  std::string out() const;
  std::string err() const;
  /// The running descendants of this process whose program is `name`.
  std::vector<pid_t> Descendants(const std::string& name) const;
  void Signal(int signal) const;
  /// Waits for its end, and kills the group after `limit_s`.
  Ended Wait(double limit_s = 120);

 private:
  const std::string files_;  // path of the two output files, without their endings
  pid_t pid_;
  bool waited_ = false;
};

/// A Command, waited for.
Ended RunCommand(std::vector<std::string> argv,
                 const std::map<std::string, std::string>& environment = {});

/// Runs a sweep until it is a cache hit, and returns the last run. A record that was tuned beside
/// other programs, as tests are, is tuned again by at most two later jobs.
template <class Sweep>
auto SweepUntilHit(Sweep sweep) {
  constexpr int kTimes = 3;
  auto ended = sweep();
  for (int run = 1; run < kTimes && ended.out.find("cache hit") == std::string::npos; ++run)
    ended = sweep();
  return ended;
}

/// Waits until `condition()`, for at most `limit_s`; false after that.
template <class Condition>
bool Eventually(Condition condition, double limit_s = 60);

bool IsRunning(pid_t pid);

std::string ReadFile(const std::string& path);  // "" when there is none
void Sleep(double seconds);

template <class Condition>
bool Eventually(Condition condition, double limit_s) {
  for (double waited = 0; waited < limit_s; waited += 0.01) {
    if (condition()) return true;
    Sleep(0.01);
  }
  return condition();
}

}  // namespace coconet
