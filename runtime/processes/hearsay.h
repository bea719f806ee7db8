#pragma once

#include <functional>

namespace coconet {

/// A rank's connection to the ranks of other nodes, as its waits use it.
struct Hearsay {
  std::function<void()> listen = [] {};  // puts received farewells and notes on the board
  /// Board::NoteWait of this rank, sent to the ranks of other nodes.
  std::function<void(int peer)> note = [](int /*peer*/) {};
};

}  // namespace coconet
