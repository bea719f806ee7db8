#include "bench/layers/model_table.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "autotune/command/sizes.h"
#include "bench/harness/finding.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"
#include "jit/compile/temp_dir.h"

namespace coconet::bench {
Row NewModelRow(absl::string_view name, const ModelCase& c, int ranks,
                absl::string_view processes) {
  Row row;
  row.Set("case", std::string(name))
      .Set("ranks", static_cast<int64_t>(ranks))
      .Set("processes", std::string(processes));
  row.Set("dtype", std::string(Name(c.dtype)))
      .Set("sizes", SizesText(c.sizes))
      .Set("budget_s", c.budget_s);
  row.Set("load_before", LoadAverage());
  AddMachine(row);
  return row;
}

void SetSides(Row& row, absl::Span<const Finding> findings) {
  std::set<std::string> sides;
  for (const Finding& f : findings) {
    if (f.timing.samples > 0) sides.insert(f.side);
  }
  for (const std::string& side : sides) {
    const Finding& fastest = *FastestOf(findings, side);
    SetTime(row, side, fastest.timing);
    row.Set("rounds", fastest.timing.samples);
    if (!fastest.name.empty()) row.Set(absl::StrCat(side, "_form"), fastest.name);
    const std::string variant = FactOf(findings, "variant", side),
                      cores = FactOf(findings, "cores", side);
    if (!variant.empty()) row.Set(absl::StrCat(side, "_variant"), variant);
    if (!cores.empty()) row.Set(absl::StrCat(side, "_cores"), std::stod(cores));
  }
}

void SetError(Row& row, const absl::Status& status) {
  row.Set("error", std::string(status.message()));
}

absl::Status ShowRows(
    absl::Span<const Column> columns,
    absl::FunctionRef<absl::Status(const std::string& scratch, std::vector<Row>& rows)> measure) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  std::vector<Row> rows;
  absl::Status status = measure(scratch->path(), rows);
  status.Update(Show(rows, columns));
  return status;
}

}  // namespace coconet::bench
