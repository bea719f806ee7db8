#pragma once

#include <sys/types.h>

#include <atomic>
#include <thread>
#include <vector>

#include "runtime/control/board.h"

namespace coconet {

/// Watches processes of this machine. When one ends without having finished or left, writes on the
/// board that its rank has left, so that no wait for it runs to its deadline and errors name it
/// instead of a survivor. One thread, which sleeps until then.
class DeathWatch {
 public:
  /// `pids`: by rank; 0: not watched. Watches nothing if the system has no pidfd_open (Linux before
  /// 5.3).
  DeathWatch(const Board& board, const std::vector<pid_t>& pids);
  ~DeathWatch();

  bool SawDeath() const { return saw_death_; }

 private:
  void Watch();
  void SayDead(int rank);

  Board board_;
  int stop_;                  // eventfd
  std::vector<int> ranks_;    // watched ranks
  std::vector<int> handles_;  // their pidfds
  std::atomic<bool> saw_death_{false};
  std::thread thread_;
};

}  // namespace coconet
