// Prints how many schedules each workload has, and how long their derivation takes.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_format.h"
#include "bench/derivation.h"
#include "bench/user.h"
#include "coconet/base/status.h"

ABSL_FLAG(int, rounds, 7, "derivations of each program");

namespace coconet::bench {
namespace {

constexpr double kMostMicroseconds = 1e6;

std::vector<Column> Columns() {
  return {
      {"workload", [](const Row& row) { return std::get<std::string>(row.Get("case")); }},
      {"dtype", [](const Row& row) { return std::get<std::string>(row.Get("dtype")); }},
      {"nodes", [](const Row& row) { return std::get<std::string>(row.Get("nodes")); }},
      {"schedules",
       [](const Row& row) { return absl::StrFormat("%.0f", row.Number("schedules")); }},
      {"graphs", [](const Row& row) { return absl::StrFormat("%.0f", row.Number("graphs")); }},
      {"time", [](const Row& row) { return TimeText(row.Number("ours_us")); }},
      {"+-", [](const Row& row) { return absl::StrFormat("%.1f%%", 100 * row.Number("spread")); }},
      {"within 1 s",
       [](const Row& row) { return std::string(std::get<bool>(row.Get("met")) ? "yes" : "NO"); }}};
}

absl::Status RunAll() {
  std::vector<Row> rows;
  for (const WorkloadInfo& workload : Workloads()) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const bool by_node : {false, true}) {
        ASSIGN_OR_RETURN(
            Row row,
            MeasureDerivation(workload, dtype,
                              IsQuick() ? 1 : std::max(1, absl::GetFlag(FLAGS_rounds)), by_node));
        const Bar bars[] = {{"ours_us", Bar::Side::kAtMost, kMostMicroseconds}};
        rows.push_back(std::move(row.SetBars(bars)));
      }
    }
  }
  return Show(rows, Columns());
}

}  // namespace
}  // namespace coconet::bench

int main(int argc, char** argv) {
  using namespace coconet::bench;  // NOLINT: main
  const absl::Status flags =
      ParseFlags(argc, argv,
                 "counts and times the derivation of schedules; see bench/README.md\n\n  schedules "
                 "[--rounds=7] [--json=FILE]");
  return ExitCode("schedules", flags.ok() ? RunAll() : flags);
}
