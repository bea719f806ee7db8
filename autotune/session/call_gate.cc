#include "autotune/session/call_gate.h"

#include <pthread.h>

#include "absl/strings/str_cat.h"

namespace coconet {

std::atomic<int> call_gate_internal::forks = 0;

int Forks() {
  static const int registered = pthread_atfork(
      nullptr, nullptr, [] { call_gate_internal::forks.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return call_gate_internal::forks.load(std::memory_order_relaxed);
}

absl::Status CallGate::Refusal(absl::string_view operation) const {
  if (in_child()) {
    return absl::FailedPreconditionError(
        absl::StrCat(operation, ": the session was opened before fork(), by the parent process; ",
                     "open one in the child, or fork before"));
  }
  if (closed())
    return absl::FailedPreconditionError(absl::StrCat(operation, ": the session is closed"));
  return absl::FailedPreconditionError(
      absl::StrCat(operation,
                   ": another call of this session is in progress, in another thread or "
                   "in one of the session's callbacks; want one at a time"));
}

}  // namespace coconet
