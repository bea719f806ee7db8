// Prints how fast generated kernels load and store, beside plain streams of the same bytes.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/compiler/kernel_cases.h"
#include "bench/compiler/kernel_speed.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"
#include "jit/compile/temp_dir.h"
#include "runtime/world.h"

ABSL_FLAG(std::vector<std::string>, case, {},
          "bias, column, odd, rowfold, strided, gather, scalars; default: all");
ABSL_FLAG(double, seconds, 1, "for each row");

namespace coconet::bench {
namespace {

std::vector<Column> Columns() {
  static constexpr auto kSpeed = [](const Row& row, absl::string_view name) {
    return absl::StrFormat("%.1f", row.Number(name));
  };
  return {
      {"case", [](const Row& row) { return TextOf(row, "case"); }},
      {"kernel", [](const Row& row) { return TextOrError(row, "form"); }},
      {"rows", [](const Row& row) { return CountText(static_cast<int64_t>(row.Number("rows"))); }},
      {"ranks", [](const Row& row) { return absl::StrCat(row.Number("ranks")); }},
      {"ours", [](const Row& row) { return TimeText(row.Number("ours_us")); }},
      {"+-", [](const Row& row) { return absl::StrFormat("%.0f%%", 100 * row.Number("spread")); }},
      {"GB/s", [](const Row& row) { return kSpeed(row, "gb_s"); }},
      {"stream GB/s", [](const Row& row) { return kSpeed(row, "limit_gb_s"); }},
      {"of stream", [](const Row& row) { return RatioOf(row, "of_limit"); }}};
}

absl::StatusOr<int> VectorBytes() {
  int bytes = 0;
  RETURN_IF_ERROR(RunWorld({.ranks = 1}, [&](Rank& rank) {
    bytes = rank.topology().vector_bytes;
    return absl::OkStatus();
  }));
  return bytes;
}

absl::StatusOr<Row> MeasureOn(int ranks, const KernelCase& c, int64_t rows, int vector_bytes,
                              Compiler& compiler) {
  ASSIGN_OR_RETURN(const CompiledKernels kernels,
                   CompileCase(c, rows, ranks, vector_bytes, compiler));
  const RoundTerms terms{.seconds = IsQuick() ? 0.05 : absl::GetFlag(FLAGS_seconds)};
  const double load = LoadAverage();
  Row row;
  RETURN_IF_ERROR(RunWorld({.ranks = ranks}, [&](Rank& rank) -> absl::Status {
    ASSIGN_OR_RETURN(Row mine, MeasureKernel(rank, c, rows, kernels, terms));
    if (rank.rank() == 0) row = std::move(mine);
    return absl::OkStatus();
  }));
  AddMachine(row.Set("load_before", load));
  return row;
}

absl::Status RunAll() {
  const std::vector<std::string> wanted = absl::GetFlag(FLAGS_case);
  const std::vector<KernelCase> cases = KernelCases(IsQuick());
  for (const std::string& name : wanted) {
    if (absl::c_none_of(cases, [&](const KernelCase& c) { return c.name == name; }))
      return absl::InvalidArgumentError(absl::StrCat("--case=", name, ": no such case"));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> folder, TempDir::Make());
  ASSIGN_OR_RETURN(const std::unique_ptr<Compiler> compiler,
                   MakeHostCompiler({.cache_dir = folder->path()}));
  ASSIGN_OR_RETURN(const int vector_bytes, VectorBytes());
  std::vector<Row> rows;
  for (const KernelCase& c : cases) {
    if (!wanted.empty() && !absl::c_linear_search(wanted, c.name)) continue;
    for (const int64_t size : c.rows) {
      for (const int ranks : c.ranks) {
        absl::StatusOr<Row> row = MeasureOn(ranks, c, size, vector_bytes, *compiler);
        if (!row.ok()) {
          Row failed;
          failed.Set("case", c.name).Set("form", c.form).Set("ranks", int64_t{ranks});
          failed.Set("rows", size).Set("error", std::string(row.status().message()));
          row = std::move(failed);
        }
        rows.push_back(*std::move(row));
      }
    }
  }
  return Show(rows, Columns());
}

}  // namespace
}  // namespace coconet::bench

int main(int argc, char** argv) {
  using namespace coconet::bench;  // NOLINT: main
  return Main("kernels",
              "measures loads and stores of generated kernels; see bench/README.md\n\n  kernels "
              "[--case=bias,odd] [--seconds=1] [--quick] [--json=FILE] [--markdown=FILE]",
              RunAll, argc, argv);
}
