#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "bench/suite/suite.h"

namespace coconet::bench {

/// A program that measures one topic.
struct SuiteProgram {
  absl::string_view name;
  absl::string_view usage;
  Topic topic{};
  double budget_s = 0;  // of tuning one program; --budget overrides it
  std::function<absl::Status(SuiteOptions&)> options;  // from the program's own flags
};

/// The program's main: the worker's if this process was started as one; else parses flags, runs all
/// cases, prints the table and writes the requested files, also after an interruption.
int SuiteMain(const SuiteProgram& program, int argc, char** argv);

}  // namespace coconet::bench
