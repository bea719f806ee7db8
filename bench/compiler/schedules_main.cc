// Prints how many schedules are derived of each workload, and how long that takes; or how long
// large programs take until they are lowered; or what twelve layers that are alike take beside two.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/compiler/derivation.h"
#include "bench/compiler/large.h"
#include "bench/compiler/layers.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"

ABSL_FLAG(int, rounds, 7, "derivations of each program");
ABSL_FLAG(
    std::string, case, "workloads",
    "workloads; large: programs of up to 100,000 operations, derived, analysed and lowered; or "
    "layers: kernels of a training step of 2 and of 12 layers, and the time to compile them");

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

std::vector<Column> LargeColumns() {
  return {
      {"program", [](const Row& row) { return TextOf(row, "case"); }},
      {"operations",
       [](const Row& row) { return absl::StrFormat("%.0f", row.Number("operations")); }},
      {"schedules",
       [](const Row& row) { return absl::StrFormat("%.0f", row.Number("schedules")); }},
      {"derive", [](const Row& row) { return absl::StrFormat("%.3f s", row.Number("derive_s")); }},
      {"analyse",
       [](const Row& row) { return absl::StrFormat("%.3f s", row.Number("analyse_s")); }},
      {"lower", [](const Row& row) { return absl::StrFormat("%.3f s", row.Number("lower_s")); }},
      {"lower fused",
       [](const Row& row) { return absl::StrFormat("%.3f s", row.Number("lower_fused_s")); }},
      {"characters",
       [](const Row& row) { return absl::StrFormat("%.0f", row.Number("characters")); }},
      {"all", [](const Row& row) { return absl::StrFormat("%.3f s", row.Number("all_s")); }},
      {"met", MetOf}};
}

absl::Status RunLarge() {
  struct Case {
    absl::string_view name;
    Graph program;
    double most_s;
  };
  const int64_t part = IsQuick() ? 10 : 1;
  const Case cases[] = {{"chain of 1,000", ChainProgram(1000 / part), 0.5},
                        {"chain of 10,000", ChainProgram(10000 / part), 5},
                        {"sum of 100,000 terms", SumProgram(100000 / part), 5},
                        {"clip over 500 tensors", ClipProgram(500 / part), 5}};
  std::vector<Row> rows;
  for (const Case& c : cases) {
    const int rounds = IsQuick() ? 1 : std::max(1, std::min(absl::GetFlag(FLAGS_rounds), 3));
    ASSIGN_OR_RETURN(Row row, MeasureLarge(c.name, c.program, rounds));
    const Bar bars[] = {{"all_s", Bar::Side::kAtMost, c.most_s}};
    rows.push_back(std::move(row.SetBars(bars)));
  }
  return Show(rows, LargeColumns());
}

/// Twelve layers that are alike beside two: what they share is compiled once.
absl::Status RunLayers() {
  std::vector<Row> rows;
  for (const int64_t layers : {2, IsQuick() ? 3 : 12}) {
    ASSIGN_OR_RETURN(rows.emplace_back(), MeasureLayers(layers));
    AddMachine(rows.back().Set("load_before", LoadAverage()));
  }
  Row &few = rows[0], &many = rows[1];
  for (const char* field : {"kernels", "compile_s"})
    many.Set(absl::StrCat(field, "_ratio"), many.Number(field) / few.Number(field));
  many.SetBars(
      {{"kernels_ratio", Bar::Side::kAtMost, 1.1}, {"compile_s_ratio", Bar::Side::kAtMost, 1.1}});
  const std::vector<Column> columns = {
      {"program", [](const Row& row) { return TextOf(row, "case"); }},
      {"layers", [](const Row& row) { return absl::StrFormat("%.0f", row.Number("layers")); }},
      {"operations",
       [](const Row& row) { return absl::StrFormat("%.0f", row.Number("operations")); }},
      {"kernels", [](const Row& row) { return absl::StrFormat("%.0f", row.Number("kernels")); }},
      {"over few", [](const Row& row) { return RatioOf(row, "kernels_ratio"); }},
      {"compile",
       [](const Row& row) { return absl::StrFormat("%.2f s", row.Number("compile_s")); }},
      {"over few ", [](const Row& row) { return RatioOf(row, "compile_s_ratio"); }},
      {"met", MetOf}};
  return Show(rows, columns);
}

absl::Status RunWorkloads() {
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

absl::Status Run() {
  const std::string which = absl::GetFlag(FLAGS_case);
  if (which == "workloads") return RunWorkloads();
  if (which == "large") return RunLarge();
  if (which == "layers") return RunLayers();
  return absl::InvalidArgumentError("want --case=workloads, large or layers");
}

}  // namespace
}  // namespace coconet::bench

int main(int argc, char** argv) {
  using namespace coconet::bench;  // NOLINT: main
  return Main("schedules",
              "counts and times the derivation of schedules; see bench/README.md\n\n  schedules "
              "[--case=workloads|large|layers] [--rounds=7] [--json=FILE]",
              Run, argc, argv);
}
