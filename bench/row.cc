#include "bench/row.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "coconet/base/status.h"

namespace coconet::bench {
namespace {

std::string Quote(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      absl::StrAppend(&quoted, "\\", absl::string_view(&c, 1));
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&quoted, "\\u%04x", c);
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string JsonOf(const Value& value) {
  return std::visit(
      Match{[](std::nullptr_t) { return std::string("null"); },
            [](bool v) { return std::string(v ? "true" : "false"); },
            [](int64_t v) { return absl::StrCat(v); }, [](double v) { return absl::StrCat(v); },
            [](const std::string& v) { return Quote(v); }},
      value);
}

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
  return std::visit(Match{[](std::nullptr_t) { return false; }, [](bool) { return false; },
                          [](int64_t) { return true; }, [](double) { return true; },
                          [](const std::string&) { return false; }},
                    value);
}

/// Columns, not bytes: continuation bytes of UTF-8 take none.
size_t Width(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; });
}

std::vector<std::vector<std::string>> Cells(absl::Span<const Row> rows,
                                            absl::Span<const Column> columns) {
  std::vector<std::vector<std::string>> lines(1);
  for (const Column& column : columns) lines[0].emplace_back(column.title);
  for (const Row& row : rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const Column& column : columns) line.push_back(column.cell(row));
  }
  return lines;
}

}  // namespace

Row& Row::Set(absl::string_view name, Value value) {
  if (const double* number = std::get_if<double>(&value);
      number != nullptr && !std::isfinite(*number))
    value = nullptr;
  for (auto& [known, old] : fields_) {
    if (known == name) {
      old = std::move(value);
      return *this;
    }
  }
  fields_.emplace_back(name, std::move(value));
  return *this;
}

const Value& Row::Get(absl::string_view name) const {
  static const Value none = nullptr;
  for (const auto& [known, value] : fields_) {
    if (known == name) return value;
  }
  return none;
}

double Row::Number(absl::string_view name) const {
  return std::visit(Match{[](std::nullptr_t) { return 0.0; }, [](bool) { return 0.0; },
                          [](int64_t v) { return static_cast<double>(v); },
                          [](double v) { return v; }, [](const std::string&) { return 0.0; }},
                    Get(name));
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

std::string Json(absl::Span<const Row> rows) {
  std::vector<std::string> objects;
  for (const Row& row : rows) {
    objects.push_back(absl::StrCat("{",
                                   absl::StrJoin(row.fields(), ", ",
                                                 [](std::string* out, const auto& field) {
                                                   absl::StrAppend(out, Quote(field.first), ": ",
                                                                   JsonOf(field.second));
                                                 }),
                                   "}"));
  }
  return absl::StrCat("[\n", absl::StrJoin(objects, ",\n"), "\n]\n");
}

absl::Status WriteFile(const std::string& file, absl::string_view text) {
  std::ofstream out(file);
  out << text;
  out.flush();
  return out ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("write ", file, ": cannot"));
}

std::string Table(absl::Span<const Row> rows, absl::Span<const Column> columns) {
  const std::vector<std::vector<std::string>> lines = Cells(rows, columns);
  std::vector<size_t> widths(columns.size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], Width(line[i]));
  }
  std::string table;
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      const bool last = i + 1 == line.size();
      absl::StrAppend(&table, line[i], std::string(last ? 0 : widths[i] - Width(line[i]) + 2, ' '),
                      last ? "\n" : "");
    }
  }
  return table;
}

std::string MarkdownTable(absl::Span<const Row> rows, absl::Span<const Column> columns) {
  std::string table;
  bool header = true;
  for (const auto& line : Cells(rows, columns)) {
    for (const std::string& cell : line)
      absl::StrAppend(&table, "| ", absl::StrReplaceAll(cell, {{"|", "\\|"}}), " ");
    table += "|\n";
    for (size_t i = 0; header && i < line.size(); ++i) table += "| --- ";
    if (header) table += "|\n";
    header = false;
  }
  return table;
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
