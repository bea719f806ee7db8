// Data-parallel optimizers: ours against a careful user's MPI program, and against the memory's
// limit. bench/README.md explains the rows.

#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "autotune/command/sizes.h"
#include "bench/harness/user.h"
#include "bench/suite/suite.h"

ABSL_FLAG(std::vector<std::string>, N, {}, "adam at these sizes: 1Ki,16Mi");
ABSL_FLAG(std::string, before, "",
          "warm_start: the data_parallel of another commit with the same schema of tuning caches, "
          "which is run in turns with this one");

namespace coconet::bench {
namespace {

absl::Status RunDataParallel() {
  SuiteProgram program = {.topic = Topic::kDataParallel,
                          .budget_s = 20,
                          .before = Resolve(absl::GetFlag(FLAGS_before))};
  for (const std::string& text : absl::GetFlag(FLAGS_N)) {
    const absl::StatusOr<int64_t> size = ParseSize(text);
    if (!size.ok() || *size == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--N: want a size such as 4096 or 16Mi, have \"", text, "\""));
    }
    program.sizes.push_back(*size);
  }
  return RunSuite(program);
}

const Registered kBenchmark({.name = "data_parallel",
                             .purpose = "measures data-parallel optimizers",
                             .heeds = {"quick", "budget"},
                             .words = {{"case",
                                        "first_sweep, dispatch, steps, warm_start, adam, "
                                        "adam_threads"}},
                             .run = RunDataParallel});

}  // namespace
}  // namespace coconet::bench
