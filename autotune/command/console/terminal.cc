#include "autotune/command/console/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

#include "coconet/base/table.h"

namespace coconet {

size_t ColumnsOf(std::FILE* file) {
  struct winsize size = {};
  const int fd = fileno(file);
  if (fd < 0 || isatty(fd) == 0 || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return TableColumn::kWhole;
  return size.ws_col;
}

ProgressLine::ProgressLine(std::FILE* file, size_t columns)
    : file_(file),
      columns_(columns),
      shown_(std::chrono::steady_clock::now() - std::chrono::hours(1)) {}

void ProgressLine::Show(absl::string_view text) {
  const bool terminal = columns_ != TableColumn::kWhole;
  const auto now = std::chrono::steady_clock::now();
  const auto quiet = terminal ? std::chrono::milliseconds(50) : std::chrono::milliseconds(3000);
  if (now - shown_ < quiet) return;
  shown_ = now;
  // A line that wraps could not be taken back, and one that is full wraps on some terminals.
  const std::string line = terminal ? CutText(text, columns_ - 1) : std::string(text);
  std::fprintf(file_, terminal ? "\r\x1b[K%s" : "%s\n", line.c_str());
  std::fflush(file_);
  on_screen_ = terminal;
}

void ProgressLine::Clear() {
  if (on_screen_) std::fputs("\r\x1b[K", file_);
  on_screen_ = false;
}

}  // namespace coconet
