#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>

#include "absl/strings/string_view.h"

namespace coconet {

/// The columns of the terminal that `file` writes to; TableColumn::kWhole, so that nothing is cut,
/// if it is a file or a pipe, or a terminal that does not tell.
size_t ColumnsOf(std::FILE* file);

/// Shows what is going on: on a terminal one line that changes and is cut to the terminal's width,
/// elsewhere a whole line every few seconds. For one thread at a time.
class ProgressLine {
 public:
  /// `columns`: ColumnsOf(file). `file` must outlive the object.
  ProgressLine(std::FILE* file, size_t columns);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(absl::string_view text);
  /// Takes the line back, so that something else can be printed.
  void Clear();

 private:
  std::FILE* const file_;
  const size_t columns_;
  bool on_screen_ = false;
  std::chrono::steady_clock::time_point shown_;
};

}  // namespace coconet
