#ifndef COCONET_BENCH_SUITE_MAIN_H_
#define COCONET_BENCH_SUITE_MAIN_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "bench/suite.h"

namespace coconet::bench {

/// A program that measures one topic.
struct SuiteProgram {
  absl::string_view name;
  absl::string_view usage;
  Topic topic{};
  double budget_s = 0;  // of tuning one program, unless --budget says otherwise
  std::function<absl::Status(SuiteOptions&)> options;  // from the program's own flags
};

/// Its main: the worker where this process was started as one; else flags, all cases, the table,
/// and the files that were asked for. What was measured before an interruption is kept.
int SuiteMain(const SuiteProgram& program, int argc, char** argv);

}  // namespace coconet::bench

#endif  // COCONET_BENCH_SUITE_MAIN_H_
