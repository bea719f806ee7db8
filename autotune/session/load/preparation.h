#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "runtime/rank.h"

namespace coconet {

/// Whether work before measuring continues: until the user interrupts, or its time is over. All
/// ranks decide alike, by rank 0.
class Preparation {
 public:
  struct Options {
    std::function<bool()> interrupted;  // of the user; may be empty
    double end_s = 0;                   // on the clock `seconds`
    std::function<double()> seconds;    // a monotonic clock
    absl::Status when_interrupted;      // Cancelled, with what was going on
  };
  Preparation(Exchange& exchange, Options options)
      : exchange_(exchange), options_(std::move(options)) {}

  /// Collective. Once false, it stays false.
  bool GoOn();
  bool ended() const { return ended_; }
  /// Cancelled if the user interrupted; an error if the ranks lost contact.
  const absl::Status& status() const { return status_; }

 private:
  Exchange& exchange_;
  const Options options_;
  bool ended_ = false;
  absl::Status status_;
};

}  // namespace coconet
