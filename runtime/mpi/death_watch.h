#ifndef COCONET_RUNTIME_MPI_DEATH_WATCH_H_
#define COCONET_RUNTIME_MPI_DEATH_WATCH_H_

#include <sys/types.h>

#include <atomic>
#include <thread>
#include <vector>

#include "runtime/node/board.h"

namespace coconet {

/// Says on a board, for a process of this machine that ends without a word, that its rank has left:
/// so nobody waits for it until a deadline, and the error names it and not a survivor that waits,
/// too. One thread, which sleeps until then.
class DeathWatch {
 public:
  /// `pids`: by rank; 0 for those not to watch. Where the system has no pidfd_open (Linux
  /// before 5.3), watches nobody.
  DeathWatch(const Board& board, const std::vector<pid_t>& pids);
  ~DeathWatch();
  DeathWatch(const DeathWatch&) = delete;
  DeathWatch& operator=(const DeathWatch&) = delete;

  bool SawDeath() const { return saw_death_; }

 private:
  void Watch();
  void SayDead(int rank);

  Board board_;
  int stop_;                  // an event
  std::vector<int> ranks_;    // watched
  std::vector<int> handles_;  // pidfds of these
  std::atomic<bool> saw_death_{false};
  std::thread thread_;
};

}  // namespace coconet

#endif  // COCONET_RUNTIME_MPI_DEATH_WATCH_H_
