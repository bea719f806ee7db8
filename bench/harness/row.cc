#include "bench/harness/row.h"

#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/table.h"

namespace coconet::bench {
namespace {

bool Meets(const Bar& bar, double value) {
  switch (bar.side) {
    case Bar::Side::kAtLeast:
      return value >= bar.value;
    case Bar::Side::kAtMost:
      return value <= bar.value;
  }
  return false;
}

bool IsNumber(const Value& value) {
  return std::holds_alternative<int64_t>(value) || std::holds_alternative<double>(value);
}

std::string Markdown(absl::Span<const TableColumn> columns, absl::Span<const TableCells> rows) {
  std::string table, below;
  for (const TableColumn& column : columns) {
    absl::StrAppend(&table, "| ", column.title, " ");
    below += "| --- ";
  }
  absl::StrAppend(&table, "|\n", below, "|\n");
  for (const TableCells& row : rows) {
    for (const std::string& cell : row)
      absl::StrAppend(&table, "| ", absl::StrReplaceAll(cell, {{"|", "\\|"}}), " ");
    table += "|\n";
  }
  return table;
}

using Writer = std::string(absl::Span<const TableColumn>, absl::Span<const TableCells>);

std::string Written(Writer* writer, absl::Span<const Row> rows, absl::Span<const Column> columns) {
  std::vector<TableColumn> titles;
  for (const Column& column : columns) titles.push_back({std::string(column.title)});
  std::vector<TableCells> lines;
  for (const Row& row : rows) {
    TableCells& line = lines.emplace_back();
    for (const Column& column : columns) line.push_back(column.cell(row));
  }
  return writer(titles, lines);
}

}  // namespace

double Row::Number(absl::string_view name) const {
  const Value& value = Get(name);
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  const auto* real = std::get_if<double>(&value);
  return real == nullptr ? 0 : *real;
}

Row& Row::SetBars(absl::Span<const Bar> bars) {
  std::vector<std::string> texts, missed;
  for (const Bar& bar : bars) {
    texts.push_back(
        absl::StrCat(bar.field, bar.side == Bar::Side::kAtLeast ? " >= " : " <= ", bar.value));
    if (!IsNumber(Get(bar.field)) || !Meets(bar, Number(bar.field))) missed.push_back(bar.field);
  }
  Set("bar", absl::StrJoin(texts, ", "));
  Set("met", bars.empty() ? Value(nullptr) : Value(missed.empty()));
  return Set("missed", absl::StrJoin(missed, ", "));
}

void SetTime(Row& row, absl::string_view side, const Timing& timing) {
  row.Set(absl::StrCat(side, "_us"), timing.median_us)
      .Set(absl::StrCat(side, "_low_us"), timing.low_us)
      .Set(absl::StrCat(side, "_high_us"), timing.high_us);
}

std::string Json(absl::Span<const Row> rows) {
  std::vector<JsonText> objects;
  for (const Row& row : rows) objects.push_back(row.Json());
  return JsonList(objects).text + "\n";
}

absl::Status WriteFile(const std::string& file, absl::string_view text) {
  std::ofstream out(file);
  out << text;
  out.flush();
  return out ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("write ", file, ": cannot"));
}

std::string Table(absl::Span<const Row> rows, absl::Span<const Column> columns) {
  const auto writer = [](absl::Span<const TableColumn> titles, absl::Span<const TableCells> lines) {
    return TextTable(titles, lines);
  };
  return Written(writer, rows, columns);
}

std::string MarkdownTable(absl::Span<const Row> rows, absl::Span<const Column> columns) {
  return Written(Markdown, rows, columns);
}

std::string TimeText(double us) {
  if (us == 0) return "";
  if (us < 1000) return absl::StrFormat("%.3g us", us);
  if (us < 1e6) return absl::StrFormat("%.3g ms", us / 1e3);
  return absl::StrFormat("%.3g s", us / 1e6);
}

std::string CountText(int64_t count) {
  constexpr int64_t kKi = 1024, kMi = kKi * 1024;
  if (count >= kMi && count % kMi == 0) return absl::StrCat(count / kMi, "Mi");
  if (count >= kKi && count % kKi == 0) return absl::StrCat(count / kKi, "Ki");
  return absl::StrCat(count);
}

}  // namespace coconet::bench
