// Prints how long steps of the fused optimizers of the Python package take beside PyTorch's own
// over gloo, and how long Python takes from `import coconet` to the first step.

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/scripts/script.h"

ABSL_FLAG(std::string, python, "",
          "a Python interpreter that has PyTorch; default: COCONET_PYTHON, else /usr/bin/python3");
ABSL_FLAG(std::vector<std::string>, case,
          std::vector<std::string>({"adam", "small", "tensors", "train", "start"}),
          "comma-separated");
ABSL_FLAG(double, seconds, 10, "of the rounds of a row");
ABSL_FLAG(std::string, cache, "", "folder that keeps tuned programs for the next run");
ABSL_FLAG(std::string, adam, "examples/adam", "the C++ program beside which Python starts");
ABSL_FLAG(std::string, programs, "examples", "the folder of adam.coco");

namespace coconet::bench {
namespace {

/// A row that cases.py measures, or start.py if `flag` is "start".
struct TorchCase {
  absl::string_view flag;  // --case=FLAG selects the row
  absl::string_view name;  // the field "case" of the row
  int ranks = 2;
  absl::string_view arguments;  // of cases.py
  absl::string_view bars;
};
constexpr TorchCase kCases[] = {
    {"adam", "adam 16Mi x2", 2, "--case=adam --n=16777216", "ratio >= 3.5, over_program <= 1.05"},
    {"adam", "adam 16Mi x4", 4, "--case=adam --n=16777216", "ratio >= 5, over_program <= 1.05"},
    {"small", "adam 1Ki x2", 2, "--case=adam --n=1024", "ratio >= 20, ours_us <= 30"},
    {"tensors", "gpt2 tensors x2", 2, "--case=tensors", "ratio >= 3"},
    {"train", "gpt2 training x2", 2, "--case=train", "ratio >= 1"},
    {"start", "start", 2, "", "over_cpp_ms <= 150"},
};
constexpr TorchCase kQuickCases[] = {
    {"adam", "adam 1Mi x2", 2, "--case=adam --n=1048576", ""},
    {"adam", "adam 1Mi x4", 4, "--case=adam --n=1048576", ""},
    {"small", "adam 1Ki x2", 2, "--case=adam --n=1024", "ratio >= 20, ours_us <= 30"},
    {"tensors", "gpt2 tensors x2", 2, "--case=tensors --divisor=64", "ratio >= 3"},
    {"train", "gpt2 training x2", 2,
     "--case=train --layers=2 --width=128 --vocabulary=1000 --steps=3", "ratio >= 1"},
    {"start", "start", 2, "", "over_cpp_ms <= 150"},
};

std::string ValueOr(const char* variable, const std::string& usual) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? usual : value;
}

/// The script of a case, with this checkout's package and library, and a folder for tuned programs.
Script ScriptOf(const TorchCase& c, const std::string& cache) {
  Script script{.python = absl::GetFlag(FLAGS_python),
                .file = "bench/torch/cases.py",
                .arguments = absl::StrSplit(c.arguments, ' ', absl::SkipEmpty()),
                .sides = {"ours"},
                .time_limit_s = 3600};
  if (script.python.empty()) script.python = ValueOr("COCONET_PYTHON", "/usr/bin/python3");
  const auto add = [&](absl::string_view name, const auto& value) {
    script.arguments.push_back(absl::StrCat("--", name, "=", value));
  };
  add("program", absl::GetFlag(FLAGS_programs) + "/adam.coco");
  if (c.flag == "start") {
    script.file = "bench/torch/start.py";
    add("adam", absl::GetFlag(FLAGS_adam));
  } else {
    add("ranks", c.ranks);
    add("seconds", absl::GetFlag(FLAGS_seconds));
    add("budget", TuningBudget(/*usual=*/60, /*quick=*/60));
  }
  const std::string library = "autotune/c/library/libcoconet.so.1";
  script.environment = {"OMP_NUM_THREADS=1", "PYTHONPATH=python",
                        absl::StrCat("COCONET_CACHE_DIR=", cache),
                        absl::StrCat("COCONET_LIBRARY=", ValueOr("COCONET_LIBRARY", library))};
  return script;
}

/// Sets the times and facts that a script found, and their ratios.
void SetFound(const std::vector<Finding>& found, Row& row) {
  for (const Finding& finding : found) {
    int64_t count = 0;
    if (finding.timing.samples > 0) {
      SetTime(row, finding.side, finding.timing);
      row.Set(finding.side + "_samples", int64_t{finding.timing.samples});
    } else if (absl::SimpleAtoi(finding.detail, &count)) {
      row.Set(finding.side, count);
    } else {
      row.Set(finding.side == "version" ? "torch" : finding.side, finding.detail);
    }
  }
  const double ours_us = row.Number("ours_us"), torch_us = row.Number("torch_us"),
               program_us = row.Number("program_us"), backward_us = row.Number("backward_us"),
               cpp_us = row.Number("cpp_us");
  if (torch_us > 0) row.Set("ratio", torch_us / ours_us);
  if (program_us > 0) row.Set("over_program", ours_us / program_us);
  if (TextOf(row, "case") == "gpt2 training x2") {
    row.Set("ours_outside", std::max(0.0, 1 - backward_us / ours_us));
    row.Set("torch_outside", std::max(0.0, 1 - backward_us / torch_us));
  }
  if (cpp_us > 0) row.Set("cpp_ms", cpp_us / 1e3).Set("over_cpp_ms", (ours_us - cpp_us) / 1e3);
}

/// Measures a case. The row says "absent" if the interpreter has no PyTorch.
absl::Status Measure(const TorchCase& c, const std::string& cache, Row& row) {
  const auto found = RunScript(ScriptOf(c, cache));
  if (found.ok()) SetFound(*found, row);
  row.SetBars(BarsOf(c.bars));
  if (!absl::IsUnavailable(found.status())) return found.status();
  row.Set("torch", "absent").Set("why", std::string(found.status().message())).Set("met", nullptr);
  return absl::OkStatus();
}

absl::Status RunAll() {
  const auto cases = absl::MakeConstSpan(IsQuick() ? kQuickCases : kCases);
  const std::vector<std::string> wanted = absl::GetFlag(FLAGS_case);
  const std::string kept = Resolve(absl::GetFlag(FLAGS_cache));
  std::vector<RowTask> tasks;
  for (const TorchCase& c : cases) {
    if (!absl::c_linear_search(wanted, c.flag)) continue;
    tasks.push_back({.words = std::string(c.name),
                     .row = Row().Set("case", std::string(c.name)).Set("ranks", c.ranks),
                     .measure = [&](const std::string& scratch, Row& row) {
                       return Measure(c, kept.empty() ? scratch : kept, row);
                     }});
  }
  const std::vector<Column> columns = ColumnsOf(
      "case, torch|result, ours|time, PyTorch|time|torch_us, ratio|ratio, "
      "over the program|ratio|over_program, ms over C++|ratio|over_cpp_ms, "
      "outside torch|ratio|ours_outside, PyTorch outside|ratio|torch_outside, bar, met");
  return MeasureRows(tasks, columns);
}

const Registered kBenchmark(
    {.name = "torch",
     .purpose = "measures the Python package's fused optimizers beside PyTorch's",
     .heeds = {"quick", "budget"},
     .words = {{"case", "adam, small, tensors, train, start"}},
     .run = RunAll});

}  // namespace
}  // namespace coconet::bench
