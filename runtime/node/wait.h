#pragma once

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace coconet {

/// How a thread waits for a word that another thread or process writes: the one policy of kernels,
/// collectives, exchanges and block teams. First it polls with a CPU pause in between, for about 2
/// us if every waiter has a core of its own, else not at all (kernels: not for peers on the same
/// core); then it yields; after about 1 ms it sleeps between polls. Threads of one core that
/// yield for longer can keep all others from it for a minute and more, those of the kernel too
/// (seen with Linux 6.18; mended by its commit 1319ea57529e, "Fix zero_vruntime tracking fix").
struct WaitTerms {
  unsigned spins = 0;      // polls before the first yield
  int64_t timeout_ns = 0;  // counted from the first yield
};

/// A wait for a rank of another node that reaches its deadline reports it, then waits 1 / kGrace of
/// the deadline longer, to hear whether that rank waits too, and for whom.
inline constexpr int64_t kGrace = 4;

/// `waiters`: threads on this node that may wait at once: one per rank and block.
WaitTerms TermsFor(int waiters, int cores, double timeout_s);

inline void CpuPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// The state of one wait.
class Pauser {
 public:
  explicit Pauser(const WaitTerms& terms) : spins_(terms.spins), timeout_ns_(terms.timeout_ns) {}

  enum class Phase : uint8_t { kSpin, kYield, kSleep, kDeadline };
  /// The kind of the next pause. Reads the clock every few yields, never while spinning.
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

/// The state of one wait for the network, which takes from 50 us to seconds: a few polls,
/// then sleeps of 50 us, later 100 us, between polls. Sleeps leave most of the core to other
/// threads; polls without sleep would take all of it, and each yield would give it away for
/// a scheduler's slice.
class Dozer {
 public:
  explicit Dozer(int64_t timeout_ns) : timeout_ns_(timeout_ns) {}
  /// Pauses; false after the deadline.
  bool Pause();
  /// Starts the wait anew, after something has arrived.
  void Reset() { *this = Dozer(timeout_ns_); }

 private:
  int64_t timeout_ns_;
  int64_t start_ns_ = 0;
  unsigned pauses_ = 0;
};

/// An observer of the calling thread's waits for other ranks' threads (AwaitPeer) that last longer
/// than a few polls.
class WaitObserver {
 public:
  virtual ~WaitObserver() = default;
  /// Until End, any thread may call `ready`, which returns true once the wait is over, perhaps
  /// before the waiting thread has noticed.
  virtual void Begin(absl::FunctionRef<bool()> ready) = 0;
  virtual void End() = 0;
};
/// Sets the calling thread's observer; null: none.
void ObserveWaits(WaitObserver* observer);

/// One wait as reported to the thread's observer.
class ObservedWait {
 public:
  ObservedWait() = default;
  ~ObservedWait();
  ObservedWait(const ObservedWait&) = delete;
  ObservedWait& operator=(const ObservedWait&) = delete;
  /// Reports the wait; later calls have no effect.
  void Begin(absl::FunctionRef<bool()> ready);

 private:
  WaitObserver* told_ = nullptr;
};

enum class WaitEnd : uint8_t { kReady, kInVain, kDeadline };

/// Waits until `ready()`. From the first yield on, `in_vain()`, which may cost more than `ready()`,
/// is also polled; true ends the wait, unless `ready()` holds by then.
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

/// True when `flag` holds `epoch` or a later one. Flags are never reset; epochs wrap around.
inline bool Reached(unsigned flag, unsigned epoch) { return static_cast<int>(flag - epoch) >= 0; }

/// From now on the calling thread preempts threads that compute on its core as soon as it wakes: it
/// gets the lowest real-time priority, if the system permits that; else nothing changes. Its waits
/// sleep instead of yielding, so that the thread that it waits for can run. Threads that it creates
/// have normal priority.
void BecomePrompt();

/// For threads of one process whose waiting must not disturb computing threads on the same core:
/// polls `spins` times, then sleeps until Publish. Has no deadline; use it to wait for threads
/// whose own waits have one.
void SleepUntilReached(const std::atomic<unsigned>& flag, unsigned epoch, unsigned spins);
void Publish(std::atomic<unsigned>& flag, unsigned epoch);

}  // namespace coconet
