#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// Point-to-point messages between ranks that may be on different machines. Nothing blocks.
/// Messages of one sender with one tag arrive in the order in which they were sent. Thread-safe,
/// also for calls of different tags at the same time.
class Wire {
 public:
  virtual ~Wire() = default;
  /// As Communicator::name.
  virtual absl::string_view name() const = 0;

  /// A message under way; null: there is none.
  struct Ticket {
    uintptr_t handle = 0;
  };
  /// `data` must stay until the ticket is done; for ever, where it never is (a peer is missing).
  virtual absl::Status Send(int peer, int tag, const char* data, int64_t bytes, Ticket& ticket) = 0;
  virtual absl::Status Receive(int peer, int tag, char* data, int64_t bytes, Ticket& ticket) = 0;
  /// Whether the message has been sent or received; then the ticket becomes null. A null ticket is
  /// done.
  virtual absl::Status Test(Ticket& ticket, bool& done) = 0;
  /// Ends a receive for which no message may come, where that is not what closing the wire does.
  virtual void Cancel(Ticket& /*ticket*/) {}
};

}  // namespace coconet
