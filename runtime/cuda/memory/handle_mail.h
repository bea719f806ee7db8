#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coconet/base/descriptor.h"
#include "runtime/mesh.h"

namespace coconet {

/// Passes file descriptors between processes of one machine, through one socket per process,
/// without a name in any file system. (The driver's descriptors cannot be opened as
/// /proc/<pid>/fd/<fd>, as memfds are: that would open the device anew.) Messages without the
/// secret of the receiver's address are ignored.
class HandleMail {
 public:
  static absl::StatusOr<HandleMail> Open();
  /// This mailbox's address, for peers. `sends`: whether they will be sent a file.
  std::string Address(bool sends) const;
  /// Sends `mine`, if open, to all others of `group`, and waits for the files of those that send
  /// one, for at most `timeout_s` seconds. Returns files by rank. Unavailable if one does not
  /// arrive. If a rank's address is "", because it has no socket, nothing is sent or awaited; that
  /// rank reports the reason.
  absl::StatusOr<std::vector<Descriptor>> Swap(const Members& group, int rank,
                                               absl::Span<const std::string> addresses,
                                               const Descriptor& mine, double timeout_s) const;

 private:
  HandleMail(Descriptor socket, std::string name, uint64_t secret)
      : socket_(std::move(socket)), name_(std::move(name)), secret_(secret) {}
  /// Returns false if the receiver's queue is full.
  absl::StatusOr<bool> Send(const std::string& address, int rank, const Descriptor& file) const;
  /// Receives all waiting files; returns their number.
  int Receive(const Members& group, std::vector<Descriptor>& files) const;

  Descriptor socket_;
  std::string name_;
  uint64_t secret_;
};

}  // namespace coconet
