#include "bench/harness/row_task.h"

#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/harness/machine.h"
#include "bench/harness/user.h"
#include "coconet/base/status.h"
#include "jit/compile/temp_dir.h"

namespace coconet::bench {
namespace {

absl::Status MeasureAll(absl::Span<const RowTask> tasks, const std::string& scratch,
                        std::vector<Row>& rows) {
  for (const RowTask& task : tasks) {
    absl::FPrintF(stderr, "%s\n", task.words);
    Row row = task.row;
    AddMachine(row.Set("load_before", LoadAverage()));
    const absl::Status status = task.measure(scratch, row);
    if (absl::IsCancelled(status) || absl::IsUnavailable(status)) return status;
    if (!status.ok()) row.Set("error", std::string(status.message()));
    rows.push_back(std::move(row));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureRows(absl::Span<const RowTask> tasks, absl::Span<const Column> columns) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TempDir> scratch, TempDir::Make());
  std::vector<Row> rows;
  absl::Status status = MeasureAll(tasks, scratch->path(), rows);
  status.Update(Show(rows, columns));
  return status;
}

}  // namespace coconet::bench
