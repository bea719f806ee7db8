// Training steps in HLO. plans: imports files and plans them, on simulated links. train: imports a
// GPT that JAX writes, trains it, and measures it beside XLA's own execution.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "bench/hlo/hlo_plans.h"
#include "bench/hlo/hlo_training.h"
#include "coconet/base/status.h"

ABSL_FLAG(std::string, cases, "plans,train", "comma-separated");
ABSL_FLAG(std::string, files, "", "of plans: .hlo files and folders of them, comma-separated");
ABSL_FLAG(double, seconds, 10, "of the search for a plan");
ABSL_FLAG(std::string, jax, "", "of train: a Python interpreter that has JAX");
ABSL_FLAG(std::string, ranks, "2,4", "of train, comma-separated");

namespace coconet::bench {
namespace {

namespace fs = std::filesystem;

bool Runs(absl::string_view name) {
  for (absl::string_view each : absl::StrSplit(absl::GetFlag(FLAGS_cases), ',')) {
    if (each == name) return true;
  }
  return false;
}

absl::StatusOr<std::vector<std::string>> Files() {
  std::vector<std::string> files;
  for (absl::string_view name :
       absl::StrSplit(absl::GetFlag(FLAGS_files), ',', absl::SkipEmpty())) {
    const std::string path = Resolve(std::string(name));
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> in_folder;
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == ".hlo") in_folder.push_back(entry.path().string());
    }
    std::sort(in_folder.begin(), in_folder.end());
    files.insert(files.end(), in_folder.begin(), in_folder.end());
  }
  if (files.empty())
    return absl::InvalidArgumentError("plans: want --files=FILE.hlo,FOLDER, have none");
  return files;
}

Row NewRow(std::string name) {
  Row row;
  row.Set("case", std::move(name)).Set("load_before", LoadAverage());
  AddMachine(row);
  return row;
}

void Finish(const absl::Status& status, std::vector<Bar> bars, Row& row, std::vector<Row>& rows) {
  if (!status.ok()) row.Set("error", std::string(status.message()));
  if (!IsQuick()) row.SetBars(bars);
  rows.push_back(row);
}

absl::Status RunAll() {
  std::vector<Row> rows;
  if (Runs("plans")) {
    ASSIGN_OR_RETURN(const std::vector<std::string> files, Files());
    for (const std::string& file : files) {
      Row row = NewRow(fs::path(file).stem().string());
      const double seconds = IsQuick() ? 0.3 : absl::GetFlag(FLAGS_seconds);
      const absl::Status status = MeasurePlan(file, seconds, row);
      Finish(status,
             {{"executable", Bar::Side::kAtLeast, 0.95},
              {"seconds", Bar::Side::kAtMost, 60},
              {"memory_mib", Bar::Side::kAtMost, 4096},
              {"over_bound", Bar::Side::kAtMost, 1.05},
              {"over_xla", Bar::Side::kAtMost, 1}},
             row, rows);
    }
  }
  if (Runs("train")) {
    for (absl::string_view text : absl::StrSplit(absl::GetFlag(FLAGS_ranks), ',')) {
      int ranks = 0;
      if (!absl::SimpleAtoi(text, &ranks) || ranks < 1)
        return absl::InvalidArgumentError(absl::StrCat("want --ranks as numbers, have ", text));
      Row row = NewRow("gpt of JAX");
      absl::Status status = absl::UnavailableError("no --jax=PYTHON");
      if (const std::string python = absl::GetFlag(FLAGS_jax); !python.empty())
        status = MeasureTraining(Resolve(python), ranks, row);
      if (absl::IsUnavailable(status)) {
        row.Set("compared", absl::StrCat("absent: ", status.message()));
        rows.push_back(row);
        continue;
      }
      Finish(status, {{"ratio", Bar::Side::kAtLeast, 1.3}}, row, rows);
    }
  }
  const std::vector<Column> columns = {
      {"case", [](const Row& r) { return TextOrError(r, "case"); }},
      {"ranks", [](const Row& r) { return absl::StrFormat("%.0f", r.Number("ranks")); }},
      {"operations", [](const Row& r) { return absl::StrFormat("%.0f", r.Number("operations")); }},
      {"executable", [](const Row& r) { return RatioOf(r, "executable"); }},
      {"import", [](const Row& r) { return TimeText(1e6 * r.Number("import_s")); }},
      {"with plan", [](const Row& r) { return TimeText(1e6 * r.Number("seconds")); }},
      {"MiB", [](const Row& r) { return absl::StrFormat("%.0f", r.Number("memory_mib")); }},
      {"simulated", [](const Row& r) { return TimeText(r.Number("us")); }},
      {"over bound", [](const Row& r) { return absl::StrFormat("%.4f", r.Number("over_bound")); }},
      {"over XLA's", [](const Row& r) { return absl::StrFormat("%.4f", r.Number("over_xla")); }},
      {"ours", [](const Row& r) { return TimeText(r.Number("ours_us")); }},
      {"XLA", [](const Row& r) { return TimeText(r.Number("baseline_us")); }},
      {"ratio", [](const Row& r) { return RatioOf(r, "ratio"); }},
      {"met", [](const Row& r) { return MetOf(r); }},
      {"compared", [](const Row& r) { return TextOf(r, "compared"); }}};
  return Show(rows, columns);
}

}  // namespace
}  // namespace coconet::bench

int main(int argc, char** argv) {
  using namespace coconet::bench;  // NOLINT: main
  return Main("hlo",
              "imports, plans and runs training steps in HLO; see bench/README.md\n\n  hlo "
              "[--cases=plans,train] [--files=FILE.hlo,FOLDER] [--seconds=10] [--jax=PYTHON] "
              "[--ranks=2,4] [--budget=90] [--quick] [--json=FILE] [--markdown=FILE]",
              RunAll, argc, argv);
}
