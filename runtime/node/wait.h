#ifndef COCONET_RUNTIME_NODE_WAIT_H_
#define COCONET_RUNTIME_NODE_WAIT_H_

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace coconet {

/// How a thread waits for a word that another thread or process writes: the one policy, of kernels,
/// collectives, exchange and block teams. First polls with a CPU pause between them, for about 2
/// us, where every waiter has a core of its own, else none (kernels: none for peers on the same
/// core); then yields; after about 1 ms sleeps between polls.
struct WaitTerms {
  unsigned spins = 0;      // polls before the first yield
  int64_t timeout_ns = 0;  // from the first yield on
};

/// Who has waited for a rank of another node until the deadline says so, and then waits one part in
/// so many longer: by then it has heard whether that rank waits, too, and for whom.
inline constexpr int64_t kGrace = 4;

/// `waiters`: threads on this node that may wait at once, one a rank and block.
WaitTerms TermsFor(int waiters, int cores, double timeout_s);

inline void CpuPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// The course of one wait.
class Pauser {
 public:
  explicit Pauser(const WaitTerms& terms) : spins_(terms.spins), timeout_ns_(terms.timeout_ns) {}

  enum class Phase : uint8_t { kSpin, kYield, kSleep, kDeadline };
  /// What the next pause is. Reads the clock now and then, never while spinning.
  Phase Next() {
    if (polls_ < spins_) {
      ++polls_;
      return Phase::kSpin;
    }
    return NextSlow();
  }
  /// Pauses; false after the deadline.
  bool Pause(Phase phase);

 private:
  Phase NextSlow();

  unsigned polls_ = 0;
  unsigned spins_;
  unsigned yields_ = 0;
  int64_t timeout_ns_;
  int64_t start_ns_ = 0;
  bool sleeping_ = false;
};

/// The course of one wait for the network, which takes from 50 us to seconds: some polls, then
/// sleeps between polls, of 50 us first and 100 us later. A core that waits so has most of its time
/// for others; polls without sleep take it whole, and yields hand it to them for a scheduler's
/// slice each.
class Dozer {
 public:
  explicit Dozer(int64_t timeout_ns) : timeout_ns_(timeout_ns) {}
  /// Pauses; false after the deadline.
  bool Pause();
  /// Something came: the wait begins anew.
  void Reset() { *this = Dozer(timeout_ns_); }

 private:
  int64_t timeout_ns_;
  int64_t start_ns_ = 0;
  unsigned pauses_ = 0;
};

/// Is told of the calling thread's waits for other ranks' threads (AwaitPeer) that take longer than
/// a few polls.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  /// Any thread may ask `ready` until End: whether the wait is over, which its thread may not know
  /// yet.
  virtual void Begin(absl::FunctionRef<bool()> ready) = 0;
  virtual void End() = 0;
};
/// Of the calling thread; null: nobody is told.
void ObserveWaits(WaitObserver* observer);

/// One wait, as the thread's observer sees it.
class ObservedWait {
 public:
  ObservedWait() = default;
  ~ObservedWait();
  ObservedWait(const ObservedWait&) = delete;
  ObservedWait& operator=(const ObservedWait&) = delete;
  /// Tells of it, the first time.
  void Begin(absl::FunctionRef<bool()> ready);

 private:
  WaitObserver* told_ = nullptr;
};

enum class WaitEnd : uint8_t { kReady, kInVain, kDeadline };

/// Waits until `ready()`. `in_vain()`, which costs more than `ready()`, is asked from the first
/// yield on, and ends the wait when true unless `ready()` has come true before it.
template <class Ready, class InVain>
WaitEnd WaitUntil(const WaitTerms& terms, Ready ready, InVain in_vain) {
  Pauser pauser(terms);
  while (!ready()) {
    const Pauser::Phase phase = pauser.Next();
    if (phase != Pauser::Phase::kSpin && in_vain())
      return ready() ? WaitEnd::kReady : WaitEnd::kInVain;
    if (!pauser.Pause(phase)) return ready() ? WaitEnd::kReady : WaitEnd::kDeadline;
  }
  return WaitEnd::kReady;
}

/// Flags hold the number of the round that set them last; they are never reset, and wrap around.
inline bool Reached(unsigned flag, unsigned epoch) { return static_cast<int>(flag - epoch) >= 0; }

/// The calling thread from now on runs as soon as it wakes up, before threads that compute on the
/// same core: at the lowest of the real-time priorities, where the system permits that; else
/// nothing changes. Its waits sleep where others yield, so that nobody waits for whom it keeps from
/// running. Threads that it makes are as all others.
void BecomePrompt();

/// Between threads of one process, where who waits must not disturb those who compute on the same
/// core: sleeps until Publish, having polled `spins` times. Without a deadline: for threads whose
/// own waits have one.
void SleepUntilReached(const std::atomic<unsigned>& flag, unsigned epoch, unsigned spins);
void Publish(std::atomic<unsigned>& flag, unsigned epoch);

}  // namespace coconet

#endif  // COCONET_RUNTIME_NODE_WAIT_H_
