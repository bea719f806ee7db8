#include "runtime/control/death_watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "coconet/base/status.h"

namespace coconet {

DeathWatch::DeathWatch(const Board& board, const std::vector<pid_t>& pids)
    : board_(board), stop_(eventfd(0, EFD_CLOEXEC)) {
  for (size_t rank = 0; stop_ >= 0 && rank < pids.size(); ++rank) {
    if (pids[rank] == 0) continue;
    const int handle = static_cast<int>(syscall(SYS_pidfd_open, pids[rank], 0));
    if (handle < 0 && errno == ESRCH) SayDead(static_cast<int>(rank));
    if (handle < 0) continue;
    ranks_.push_back(static_cast<int>(rank));
    handles_.push_back(handle);
  }
  if (ranks_.empty()) return;
  sigset_t all, before;  // blocks all signals: they are for the user's threads
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Watch(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

DeathWatch::~DeathWatch() {
  if (thread_.joinable()) {
    CC_CHECK(eventfd_write(stop_, 1) == 0);
    thread_.join();
  }
  for (int handle : handles_) close(handle);
  if (stop_ >= 0) close(stop_);
}

void DeathWatch::SayDead(int rank) {
  saw_death_ = true;
  board_.Leave(rank, absl::UnavailableError("its process ended"));
}

void DeathWatch::Watch() {
  std::vector<pollfd> events = {{.fd = stop_, .events = POLLIN, .revents = 0}};
  for (int handle : handles_) events.push_back({.fd = handle, .events = POLLIN, .revents = 0});
  while (true) {
    if (poll(events.data(), events.size(), -1) < 0) continue;  // interrupted
    if (events[0].revents != 0) return;
    for (size_t i = 1; i < events.size(); ++i) {
      if (events[i].revents == 0) continue;
      SayDead(ranks_[i - 1]);
      events[i].fd = -1;  // poll ignores it from now on
    }
  }
}

}  // namespace coconet
