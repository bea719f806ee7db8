#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/search/choice.h"

namespace coconet::bench {

/// A line of a file for gpu_probe, "program | sizes | schedule | config": what to run, exactly.
struct ProbeLine {
  int number = 0;        // in the file, from 1 on
  std::string text;      // without comment and outer spaces
  std::string program;   // a workload, a file, or a baseline
  std::string sizes;     // "N=16Mi dtype=bf16 ranks=2", one space between words
  std::string schedule;  // as of Choice; "" if it is left out
  std::string config;
  /// Why the line cannot be read; then only `number` and `text` are set.
  absl::Status error;

  Choice choice() const { return {schedule, config}; }
};

/// The lines of a text, without empty ones and comments, which begin with '#' at the beginning of a
/// line or behind a space or '|'. Fields have '|' between; those in braces are part of a schedule.
/// Last fields may be left out, and "*" says the same as nothing. A line that is not of this form
/// has an error that names line and field; others are read all the same. InvalidArgument for a text
/// without any line.
absl::StatusOr<std::vector<ProbeLine>> ParseProbeLines(absl::string_view text);

/// `status` with the line, and the field if one is named: "line 3, config: ...".
absl::Status OfLine(const ProbeLine& line, absl::string_view field, const absl::Status& status);

/// "name=value" pairs by spaces. InvalidArgument for other words, and for a name that is there
/// twice.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParseWords(absl::string_view text);

}  // namespace coconet::bench
