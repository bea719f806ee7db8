#pragma once

#include <atomic>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// How many times this process was forked off by a process that used this library: 0, or more in a
/// child. Objects of a parent's session are of no use there: its threads do not exist.
int Forks();

/// Admits one call at a time to the objects of a session, from any thread, until it is closed.
/// Takes no lock.
class CallGate {
 public:
  CallGate() : forks_(Forks()) {}
  CallGate(const CallGate&) = delete;
  CallGate& operator=(const CallGate&) = delete;

  /// False: refused, see Refusal. True: the caller calls Leave, or Close, when it is done.
  bool Enter() {
    int open = kOpen;
    return !in_child() && use_.compare_exchange_strong(open, kInCall, std::memory_order_acquire,
                                                       std::memory_order_relaxed);
  }
  void Leave() { use_.store(kOpen, std::memory_order_release); }
  /// Instead of Leave: every later call is refused.
  void Close() { use_.store(kClosed, std::memory_order_release); }

  bool closed() const { return use_.load(std::memory_order_acquire) == kClosed; }
  /// In a child of the process that opened the session.
  bool in_child() const;
  /// OK if Enter would return true now, else its Refusal.
  absl::Status Check(absl::string_view operation) const {
    if (!in_child() && use_.load(std::memory_order_relaxed) == kOpen) return absl::OkStatus();
    return Refusal(operation);
  }
  /// FailedPrecondition that says why Enter was false.
  absl::Status Refusal(absl::string_view operation) const;

 private:
  enum { kOpen, kInCall, kClosed };
  std::atomic<int> use_ = kOpen;
  const int forks_;
};

/// A call of a session's objects, from its begin to the end of its scope.
class GatedCall {
 public:
  explicit GatedCall(CallGate& gate) : gate_(gate), entered_(gate.Enter()) {}
  ~GatedCall() {
    if (entered_) gate_.Leave();
  }
  GatedCall(const GatedCall&) = delete;
  GatedCall& operator=(const GatedCall&) = delete;
  bool entered() const { return entered_; }

 private:
  CallGate& gate_;
  const bool entered_;
};

/// Returns the gate's refusal from the caller's function, unless it admits the call, which then
/// lasts until the end of the scope.
#define ENTER_CALL(gate, operation)     \
  const GatedCall cc_gated_call_(gate); \
  if (!cc_gated_call_.entered()) return (gate).Refusal(operation)

namespace call_gate_internal {
extern std::atomic<int> forks;
}  // namespace call_gate_internal

inline bool CallGate::in_child() const {
  return call_gate_internal::forks.load(std::memory_order_relaxed) != forks_;
}

}  // namespace coconet
