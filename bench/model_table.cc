#include "bench/model_table.h"

#include <set>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "autotune/sweep_flags.h"
#include "bench/machine.h"
#include "bench/summary.h"
#include "coconet/base/status.h"
#include "jit/temp_dir.h"

ABSL_FLAG(std::string, json, "", "write the rows to this file");
ABSL_FLAG(std::string, markdown, "", "write the table to this file");

namespace coconet::bench {
namespace {

constexpr int kFailed = 1, kUsage = 2;

std::string Resolve(const std::string& path) { return path.empty() ? "" : ResolvePath(path, UserFolder()); }

int Fail(absl::string_view name, const absl::Status& status) {
  absl::FPrintF(stderr, "%s: %s\n", name, status.message());
  return absl::IsInvalidArgument(status) ? kUsage : kFailed;
}

}  // namespace

Row NewModelRow(absl::string_view name, const ModelCase& c, int ranks, absl::string_view processes) {
  Row row;
  row.Set("case", std::string(name)).Set("ranks", static_cast<int64_t>(ranks)).Set("processes", std::string(processes));
  row.Set("dtype", std::string(Name(c.dtype))).Set("sizes", SizesText(c.sizes)).Set("budget_s", c.budget_s);
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
    const std::string variant = FactOf(findings, "variant", side), cores = FactOf(findings, "cores", side);
    if (!variant.empty()) row.Set(absl::StrCat(side, "_variant"), variant);
    if (!cores.empty()) row.Set(absl::StrCat(side, "_cores"), std::stod(cores));
  }
}

void SetError(Row& row, const absl::Status& status) { row.Set("error", std::string(status.message())); }

absl::Status ShowModelRows(absl::Span<const Row> rows, absl::Span<const Column> columns, const std::string& json, const std::string& markdown) {
  absl::PrintF("%s", Table(rows, columns));
  if (!json.empty()) RETURN_IF_ERROR(WriteFile(json, Json(rows)));
  if (!markdown.empty()) RETURN_IF_ERROR(WriteFile(markdown, MarkdownTable(rows, columns)));
  for (const Row& row : rows) {
    const std::string error = TextOf(row, "error");
    if (!error.empty()) return absl::InternalError(absl::StrCat(TextOf(row, "case"), ": ", error));
  }
  return absl::OkStatus();
}

int ModelMain(int argc, char** argv, absl::string_view name, absl::Span<const Column> columns,
              const std::function<absl::Status(const std::string& scratch, std::vector<Row>& rows)>& measure) {
  absl::SetProgramUsageMessage(absl::StrCat("see bench/README.md\n\n  ", name, " [--json=FILE] [--markdown=FILE]"));
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) return Fail(name, absl::InvalidArgumentError(absl::StrCat("unknown argument ", rest[1], " (see --help)")));
  const absl::StatusOr<std::optional<ModelCase>> worker = ModelCaseFromFlags();
  if (!worker.ok()) return Fail(name, worker.status());
  if (worker->has_value()) {
    const absl::Status status = WorkOn(**worker);
    return status.ok() ? 0 : Fail(name, status);
  }
  const absl::StatusOr<std::unique_ptr<TempDir>> scratch = TempDir::Make();
  if (!scratch.ok()) return Fail(name, scratch.status());
  std::vector<Row> rows;
  absl::Status status = measure((*scratch)->path(), rows);
  // What was measured before an interruption is kept.
  status.Update(ShowModelRows(rows, columns, Resolve(absl::GetFlag(FLAGS_json)), Resolve(absl::GetFlag(FLAGS_markdown))));
  return status.ok() ? 0 : Fail(name, status);
}

std::string TextOf(const Row& row, absl::string_view field) {
  const std::string* text = std::get_if<std::string>(&row.Get(field));
  return text == nullptr ? "" : *text;
}

std::string RatioOf(const Row& row, absl::string_view field) {
  const double ratio = row.Number(field);
  return ratio == 0 ? "" : absl::StrFormat("%.2f", ratio);
}

std::string MetOf(const Row& row) {
  const std::string missed = TextOf(row, "missed");
  return TextOf(row, "bar").empty() ? "" : missed.empty() ? "yes" : absl::StrCat("no: ", missed);
}

}  // namespace coconet::bench
