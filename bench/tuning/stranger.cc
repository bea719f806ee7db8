#include "bench/tuning/stranger.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

namespace coconet::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void ComputeInSpells(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> seconds(1 / 0.3);
  const auto draw = [&] {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(seconds(random)));
  };
  volatile uint64_t number = seed;
  while (true) {
    for (const Clock::time_point end = Clock::now() + draw(); Clock::now() < end;) {
      for (int i = 0; i < 10000; ++i) number = number * 6364136223846793005 + 1;
    }
    std::this_thread::sleep_for(draw());
  }
}

}  // namespace

Stranger::Stranger(uint64_t seed) : child_(fork()) {
  if (child_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  ComputeInSpells(seed);
}

Stranger::~Stranger() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

}  // namespace coconet::bench
