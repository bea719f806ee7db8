#include "bench/probe/isolated.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

constexpr char kBegins = 'b', kDone = 'd';
constexpr size_t kHead = 1 + sizeof(int64_t);  // of a message: its kind and length
constexpr int kPollMs = 100;

ProbeResult Failed(int line, std::string error) {
  ProbeResult result;
  result.line = line;
  result.error = std::move(error);
  return result;
}

/// One child, and what it has told so far.
class Child {
 public:
  Child(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) {}

  /// Reads until the child ends, is interrupted twice or runs out of time; then reaps it.
  void Follow(const Isolation& isolation, std::map<int, ProbeResult>& results) {
    auto since = std::chrono::steady_clock::now();
    for (bool open = true; open;) {
      pollfd ready{.fd = pipe_, .events = POLLIN, .revents = 0};
      const int events = poll(&ready, 1, kPollMs);
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - since;
      if (waited.count() > isolation.line_seconds) {
        timed_out_ = true;
        kill(pid_, SIGKILL);
      }
      if (!told_ && isolation.interrupted && isolation.interrupted()) {
        told_ = true;
        kill(pid_, SIGTERM);  // which ends it after the line that runs
      }
      if (events <= 0) continue;
      char bytes[1 << 16];
      const ssize_t count = read(pipe_, bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      open = count > 0;
      if (count > 0) unread_.append(bytes, static_cast<size_t>(count));
      if (TakeMessages(isolation, results)) since = std::chrono::steady_clock::now();
    }
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    close(pipe_);
    status_ = status;
  }

  int begun() const { return begun_; }  // the line that has begun and is not done; 0: none
  /// Why a line that had begun has no result.
  std::string Why(const Isolation& isolation) const {
    if (timed_out_)
      return absl::StrCat("not done after ", isolation.line_seconds,
                          " s (--line-seconds): its process was ended");
    if (WIFSIGNALED(status_))
      return absl::StrCat("its process was ended by signal ", WTERMSIG(status_), " (",
                          strsignal(WTERMSIG(status_)), ")");
    return absl::StrCat("its process ended with exit code ",
                        WIFEXITED(status_) ? WEXITSTATUS(status_) : status_);
  }

 private:
  bool TakeMessages(const Isolation& isolation, std::map<int, ProbeResult>& results) {
    bool any = false;
    while (unread_.size() >= kHead) {
      int64_t length = 0;
      std::memcpy(&length, unread_.data() + 1, sizeof length);
      if (unread_.size() - kHead < static_cast<size_t>(length)) break;
      const std::string body = unread_.substr(kHead, static_cast<size_t>(length));
      const char kind = unread_[0];
      unread_.erase(0, kHead + body.size());
      any = true;
      if (kind == kBegins) {
        std::memcpy(&begun_, body.data(), sizeof begun_);
        continue;
      }
      const absl::StatusOr<ProbeResult> result = DecodeProbeResult(body);
      CC_CHECK(result.ok());
      begun_ = 0;
      results[result->line] = *result;
      if (isolation.is_done) isolation.is_done(*result);
    }
    return any;
  }

  const pid_t pid_;
  const int pipe_;
  int status_ = 0, begun_ = 0;
  bool timed_out_ = false, told_ = false;
  std::string unread_;
};

/// The lines without a result.
std::vector<int> Left(const std::vector<int>& lines, const std::map<int, ProbeResult>& results) {
  std::vector<int> left;
  for (int line : lines) {
    if (results.find(line) == results.end()) left.push_back(line);
  }
  return left;
}

}  // namespace

void Teller::Send(char kind, absl::string_view bytes) {
  std::string message(1, kind);
  const auto length = static_cast<int64_t>(bytes.size());
  message.append(reinterpret_cast<const char*>(&length), sizeof length);
  message.append(bytes.data(), bytes.size());
  for (size_t sent = 0; sent < message.size();) {
    const ssize_t count = write(pipe_, message.data() + sent, message.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) _exit(1);  // the parent is gone
    sent += static_cast<size_t>(count);
  }
}

void Teller::Begins(int line) {
  Send(kBegins, {reinterpret_cast<const char*>(&line), sizeof line});
}
void Teller::IsDone(const ProbeResult& result) { Send(kDone, Encode(result)); }

std::vector<ProbeResult> RunIsolated(
    const std::vector<int>& lines,
    absl::FunctionRef<void(const std::vector<int>& lines, Teller& teller)> run,
    const Isolation& isolation) {
  std::map<int, ProbeResult> results;
  const auto fail = [&](int line, const std::string& why) {
    results[line] = Failed(line, why);
    if (isolation.is_done) isolation.is_done(results[line]);
  };
  for (std::vector<int> left = lines; !left.empty(); left = Left(lines, results)) {
    if (isolation.interrupted && isolation.interrupted()) {
      for (int line : left) fail(line, "interrupted before it ran");
      break;
    }
    int ends[2];
    std::fflush(nullptr);  // what is buffered must not be written by both processes
    const pid_t pid = pipe(ends) == 0 ? fork() : -1;
    if (pid < 0) {
      for (int line : left) fail(line, absl::StrCat("no process for it: ", strerror(errno)));
      break;
    }
    if (pid == 0) {
      close(ends[0]);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Teller teller(ends[1]);
      run(left, teller);
      std::fflush(nullptr);
      _exit(0);
    }
    close(ends[1]);
    Child child(pid, ends[0]);
    child.Follow(isolation, results);
    if (isolation.interrupted && isolation.interrupted()) continue;
    const std::vector<int> still = Left(left, results);
    // A child that told nothing of a line is the fault of its first one.
    if (!still.empty() && (child.begun() != 0 || still.size() == left.size()))
      fail(child.begun() != 0 ? child.begun() : still.front(), child.Why(isolation));
  }
  std::vector<ProbeResult> in_order;
  for (int line : lines) in_order.push_back(results[line]);
  return in_order;
}

}  // namespace coconet::bench
