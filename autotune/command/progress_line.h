#ifndef COCONET_AUTOTUNE_COMMAND_PROGRESS_LINE_H_
#define COCONET_AUTOTUNE_COMMAND_PROGRESS_LINE_H_

#include <chrono>
#include <cstdio>
#include <string>

#include "absl/strings/string_view.h"

namespace coconet {

/// Shows on stderr what is going on: on a terminal one line that changes, elsewhere a line every
/// few seconds.
class ProgressLine {
 public:
  explicit ProgressLine(bool terminal) : terminal_(terminal) {}
  ~ProgressLine() { Clear(); }

  void Show(absl::string_view text) {
    const auto now = std::chrono::steady_clock::now();
    const auto quiet = terminal_ ? std::chrono::milliseconds(50) : std::chrono::milliseconds(3000);
    if (now - shown_ < quiet) return;
    shown_ = now;
    std::string line(text.substr(0, 100));  // a line that wraps could not be taken back
    std::fprintf(stderr, terminal_ ? "\r\x1b[K%s" : "%s\n", line.c_str());
    std::fflush(stderr);
    on_screen_ = terminal_;
  }
  void Clear() {
    if (on_screen_) std::fputs("\r\x1b[K", stderr);
    on_screen_ = false;
  }

 private:
  const bool terminal_;
  bool on_screen_ = false;
  std::chrono::steady_clock::time_point shown_ =
      std::chrono::steady_clock::now() - std::chrono::hours(1);
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_COMMAND_PROGRESS_LINE_H_
