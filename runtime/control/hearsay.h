#pragma once

#include <functional>

#include "absl/status/status.h"
#include "runtime/control/board.h"
#include "runtime/node/wait.h"

namespace coconet {

/// A rank's connection to the ranks of other nodes, as its waits use it.
struct Hearsay {
  std::function<void()> listen = [] {};  // puts received farewells and notes on the board
  /// Board::NoteWait of this rank, sent to the ranks of other nodes.
  std::function<void(int peer)> note = [](int /*peer*/) {};
};

/// The error of a broken connection: why a rank has left, if one says so within a while, since the
/// connection of a rank that leaves may break before its reason is read; else `broken`.
inline absl::Status WhyBroken(const Board& board, const Hearsay& hearsay,
                              const absl::Status& broken) {
  const auto heard = [&] {
    hearsay.listen();
    return !board.Left().ok();
  };
  const WaitTerms terms{.spins = 0, .timeout_ns = 500'000'000};
  return WaitUntil(terms, heard, [] { return false; }) == WaitEnd::kReady ? board.Left() : broken;
}

}  // namespace coconet
