// Prints how long NVRTC takes for the kernel of a whole step, and how compiles scale with threads.

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "bench/compiler/compilation.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"

ABSL_FLAG(int, rounds, 9, "compiles of each kernel");
ABSL_FLAG(int, kernels, 16, "variants that are compiled in parallel");

namespace coconet::bench {
namespace {

constexpr double kMostMicroseconds = 120e3;
constexpr double kLeastOfLimit = 0.8;

std::vector<Column> Columns() {
  return {
      {"kernel", [](const Row& row) { return std::get<std::string>(row.Get("case")); }},
      {"arch", [](const Row& row) { return std::get<std::string>(row.Get("arch")); }},
      {"threads", [](const Row& row) { return absl::StrFormat("%.0f", row.Number("threads")); }},
      {"time", [](const Row& row) { return TimeText(row.Number("ours_us")); }},
      {"+-", [](const Row& row) { return absl::StrFormat("%.1f%%", 100 * row.Number("spread")); }},
      {"one thread", [](const Row& row) { return TimeText(row.Number("baseline_us")); }},
      {"of limit",
       [](const Row& row) {
         return row.Number("of_limit") == 0 ? "" : absl::StrFormat("%.2f", row.Number("of_limit"));
       }},
      {"bar", [](const Row& row) { return std::get<std::string>(row.Get("bar")); }},
      {"met",
       [](const Row& row) { return std::string(std::get<bool>(row.Get("met")) ? "yes" : "NO"); }}};
}

void Add(Row row, const Bar& bar, std::vector<Row>& rows) {
  row.SetBars({&bar, 1});
  AddMachine(row);
  rows.push_back(std::move(row));
}

absl::Status RunAll() {
  std::vector<Row> rows;
  const int rounds = IsQuick() ? 1 : std::max(1, absl::GetFlag(FLAGS_rounds));
  for (absl::string_view arch : {"sm_80", "sm_90a", "sm_100"}) {
    for (const WorkloadInfo& workload : Workloads()) {
      if (!workload.optimizer) continue;
      absl::StatusOr<Row> row = MeasureCompilation(workload, arch, rounds);
      if (absl::IsNotFound(row.status())) continue;
      RETURN_IF_ERROR(row.status());
      Add(std::move(row->Set("threads", int64_t{1})),
          {"ours_us", Bar::Side::kAtMost, kMostMicroseconds}, rows);
    }
  }
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  for (int threads = 2; threads <= cores; threads *= 2) {
    ASSIGN_OR_RETURN(Row row,
                     MeasureParallelCompilation("sm_90a", std::max(1, absl::GetFlag(FLAGS_kernels)),
                                                threads, std::max(3, rounds / 2)));
    Add(std::move(row), {"of_limit", Bar::Side::kAtLeast, kLeastOfLimit}, rows);
  }
  return Show(rows, Columns());
}

}  // namespace
}  // namespace coconet::bench

int main(int argc, char** argv) {
  using namespace coconet::bench;  // NOLINT: main
  return Main("nvrtc",
              "times compiles of kernels by NVRTC; see bench/README.md\n\n  nvrtc [--rounds=9] "
              "[--kernels=16] [--json=FILE]",
              RunAll, argc, argv);
}
