#include "bench/harness/row.h"

#include <fstream>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"
#include "coconet/base/table.h"

namespace coconet::bench {
namespace {

bool Meets(const Bar& bar, double value) {
  return bar.side == Bar::Side::kAtLeast ? value >= bar.value : value <= bar.value;
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

/// A number in one of StrFormat's formats, of which "100*" before it makes a hundred times that.
std::string Formatted(absl::string_view format, double number) {
  if (absl::ConsumePrefix(&format, "100*")) number *= 100;
  std::string text;
  absl::FormatUntyped(&text, absl::UntypedFormatSpec(format), {absl::FormatArg(number)});
  return text;
}

std::string TextInFormat(absl::string_view format, const Row& row, absl::string_view field) {
  const double number = row.Number(field);
  if (format == "text") return IsNumber(row.Get(field)) ? absl::StrCat(number) : TextOf(row, field);
  if (format == "result") return TextOrError(row, field);
  if (format == "time") return TimeText(number);
  if (format == "s") return TimeText(1e6 * number);
  if (format == "percent") return IsNumber(row.Get(field)) ? Formatted("100*%.1f%%", number) : "";
  if (format == "ratio") return number == 0 ? "" : absl::StrFormat("%.2f", number);
  if (format == "count") return CountText(static_cast<int64_t>(number));
  if (format == "met") return MetOf(row);
  if (format == "yes") return row.Get(field) == Value(true) ? "yes" : "NO";
  return Formatted(format, number);
}

using Writer = std::string(absl::Span<const TableColumn>, absl::Span<const TableCells>);

std::string Written(Writer* writer, absl::Span<const Row> rows, absl::Span<const Column> columns) {
  std::vector<TableColumn> titles;
  for (const Column& column : columns) titles.push_back({column.title});
  std::vector<TableCells> lines;
  for (const Row& row : rows) {
    TableCells& line = lines.emplace_back();
    for (const Column& column : columns) line.push_back(column.cell(row));
  }
  return writer(titles, lines);
}

}  // namespace

std::vector<Column> ColumnsOf(absl::string_view text, absl::Span<const Column> computed) {
  std::vector<Column> columns;
  for (absl::string_view column : absl::StrSplit(text, ", ")) {
    const std::vector<std::string> words = absl::StrSplit(column, '|');
    const std::string& title = words[0];
    const std::string format = words.size() > 1 ? words[1] : title == "met" ? "met" : "text";
    if (format == "*") {
      columns.push_back(
          *absl::c_find_if(computed, [&](const Column& c) { return c.title == title; }));
      continue;
    }
    std::string field = words.size() > 2 ? words[2] : absl::StrReplaceAll(title, {{" ", "_"}});
    if (words.size() == 2 && format == "time") field += "_us";
    columns.push_back(
        {title, [format, field](const Row& row) { return TextInFormat(format, row, field); }});
  }
  return columns;
}

std::vector<Bar> BarsOf(absl::string_view text) {
  std::vector<Bar> bars;
  for (absl::string_view bar : absl::StrSplit(text, ", ", absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(bar, ' ');
    CC_CHECK(words.size() == 3);
    bars.push_back({words[0], words[1] == ">=" ? Bar::Side::kAtLeast : Bar::Side::kAtMost});
    CC_CHECK(absl::SimpleAtod(words[2], &bars.back().value));
  }
  return bars;
}

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
  return Written([](auto titles, auto lines) { return TextTable(titles, lines); }, rows, columns);
}

std::string MarkdownTable(absl::Span<const Row> rows, absl::Span<const Column> columns) {
  return Written(Markdown, rows, columns);
}

std::string TextOf(const Row& row, absl::string_view field) {
  const std::string* text = std::get_if<std::string>(&row.Get(field));
  return text == nullptr ? "" : *text;
}

std::string MetOf(const Row& row) {
  const std::string missed = TextOf(row, "missed");
  return TextOf(row, "bar").empty() ? "" : missed.empty() ? "yes" : absl::StrCat("no: ", missed);
}

std::string TextOrError(const Row& row, absl::string_view field) {
  const std::string error = TextOf(row, "error");
  return error.empty() ? TextOf(row, field)
                       : absl::StrCat("FAILED: ", error.substr(0, error.find('\n')));
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
