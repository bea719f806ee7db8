#include "coconet/base/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace coconet {
namespace {

/// UTF-8 continues a character with these bytes.
bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

size_t Width(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return !Continues(c); });
}

std::vector<size_t> WidthsFor(absl::Span<const TableColumn> columns,
                              const std::vector<TableCells>& lines, size_t widest) {
  std::vector<size_t> widths(columns.size());
  for (const TableCells& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], Width(line[c]));
  }
  size_t all = 2 * (columns.size() - 1);
  for (size_t width : widths) all += width;
  for (size_t c = columns.size(); c-- > 0 && all > widest;) {
    const size_t room = widths[c] > columns[c].least ? widths[c] - columns[c].least : 0;
    const size_t cut = std::min(room, all - widest);
    widths[c] -= cut;
    all -= cut;
  }
  return widths;
}

}  // namespace

std::string CutText(absl::string_view text, size_t width) {
  if (Width(text) <= width) return std::string(text);
  constexpr absl::string_view kDots = "...";
  const size_t dots = std::min(width, kDots.size());
  size_t end = 0;
  for (size_t characters = 0; end < text.size(); ++end) {
    if (!Continues(text[end]) && characters++ == width - dots) break;
  }
  return absl::StrCat(text.substr(0, end), kDots.substr(0, dots));
}

std::string TextTable(absl::Span<const TableColumn> columns, absl::Span<const TableCells> rows,
                      size_t widest) {
  std::vector<TableCells> lines(1);
  for (const TableColumn& column : columns) lines[0].push_back(column.title);
  lines.insert(lines.end(), rows.begin(), rows.end());
  const std::vector<size_t> widths = WidthsFor(columns, lines, widest);
  std::string table;
  for (const TableCells& line : lines) {
    std::string text;
    for (size_t c = 0; c < line.size(); ++c) {
      const std::string cell = CutText(line[c], widths[c]);
      const std::string pad(widths[c] - Width(cell), ' ');
      const bool right = columns[c].right;
      absl::StrAppend(&text, c == 0 ? "" : "  ", right ? pad : "", cell, right ? "" : pad);
    }
    absl::StrAppend(&table, text.substr(0, text.find_last_not_of(' ') + 1), "\n");
  }
  return table;
}

}  // namespace coconet
