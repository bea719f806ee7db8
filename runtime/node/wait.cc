#include "runtime/node/wait.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int64_t kSpinNs = 2000;  // some round trips between cores; longer waits are worth a yield
constexpr int64_t kSleepAfterNs = 1000000;  // after so long a wait, 0.1 ms more matters little
constexpr int64_t kSleepNs = 50000;         // about the timer slack: shorter sleeps end no sooner
constexpr unsigned kYieldsPerClockRead = 16;
constexpr unsigned kWakefulPauses = 8;  // of a Dozer, without sleep; each poll takes about 1 us
// 25 KB arrive meanwhile at 250 MB/s: less than is in flight.
constexpr int64_t kLongestDozeNs = 100000;

constexpr int64_t kPromptSleepNs = 20000;  // a prompt thread sleeps instead of yielding

thread_local bool is_prompt = false;
thread_local WaitObserver* wait_observer = nullptr;

void Sleep(int64_t ns) {
  const timespec sleep{0, ns};
  nanosleep(&sleep, nullptr);
}

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

/// Pauses that fit in kSpinNs. One takes from 5 ns to 50 ns, depending on the CPU.
unsigned MeasureSpins() {
  constexpr int kPauses = 256;
  int64_t best = kSpinNs * kPauses;
  for (int repeat = 0; repeat < 5; ++repeat) {  // the minimum excludes preemptions
    const int64_t start = NowNs();
    for (int i = 0; i < kPauses; ++i) CpuPause();
    best = std::min(best, NowNs() - start);
  }
  return static_cast<unsigned>(kSpinNs * kPauses / std::max<int64_t>(best, 1));
}

}  // namespace

void ObserveWaits(WaitObserver* observer) { wait_observer = observer; }

ObservedWait::~ObservedWait() {
  if (told_ != nullptr) told_->End();
}

void ObservedWait::Begin(absl::FunctionRef<bool()> ready) {
  if (told_ != nullptr || wait_observer == nullptr) return;
  told_ = wait_observer;
  told_->Begin(ready);
}

WaitTerms TermsFor(int waiters, int cores, double timeout_s) {
  static const unsigned spins = MeasureSpins();
  return {waiters > cores ? 0 : spins, static_cast<int64_t>(timeout_s * 1e9)};
}

Pauser::Phase Pauser::NextSlow() {
  if (!sleeping_ && yields_++ % kYieldsPerClockRead != 0) return Phase::kYield;
  const int64_t now = NowNs();
  if (start_ns_ == 0) start_ns_ = now;
  if (now - start_ns_ >= timeout_ns_) return Phase::kDeadline;
  sleeping_ = now - start_ns_ >= kSleepAfterNs;
  return sleeping_ ? Phase::kSleep : Phase::kYield;
}

bool Pauser::Pause(Phase phase) {
  switch (phase) {
    case Phase::kSpin:
      CpuPause();
      return true;
    case Phase::kYield:
      if (is_prompt) {
        Sleep(kPromptSleepNs);
      } else {
        sched_yield();
      }
      return true;
    case Phase::kSleep:
      Sleep(kSleepNs);
      return true;
    case Phase::kDeadline:
      return false;
  }
  CC_CHECK(false);
}

void SleepUntilReached(const std::atomic<unsigned>& flag, unsigned epoch, unsigned spins) {
  for (unsigned polls = 0;; ++polls) {
    const unsigned found = flag.load(std::memory_order_acquire);
    if (Reached(found, epoch)) return;
    if (polls < spins) {
      CpuPause();
    } else {
      flag.wait(found, std::memory_order_acquire);
    }
  }
}

void Publish(std::atomic<unsigned>& flag, unsigned epoch) {
  flag.store(epoch, std::memory_order_release);
  flag.notify_all();
}

bool Dozer::Pause() {
  const unsigned pause = pauses_++;
  if (pause < kWakefulPauses) return true;
  const int64_t now = NowNs();
  if (start_ns_ == 0) start_ns_ = now;
  if (now - start_ns_ >= timeout_ns_) return false;
  Sleep(std::min<int64_t>(kSleepNs * (pause - kWakefulPauses + 1), kLongestDozeNs));
  return true;
}

void BecomePrompt() {
  const sched_param lowest{.sched_priority = sched_get_priority_min(SCHED_RR)};
  is_prompt = sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) == 0;
}

}  // namespace coconet
