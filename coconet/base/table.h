#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace coconet {

/// Column of a table of text.
struct TableColumn {
  std::string title;
  bool right = false;  // aligned to the right
  /// Characters that the column keeps if the table is too wide; kWhole: all.
  static constexpr size_t kWhole = std::string::npos;
  size_t least = kWhole;
};
using TableCells = std::vector<std::string>;  // one per column

/// `text`, if it has more than `width` characters its beginning and "...", that many in all.
std::string CutText(absl::string_view text, size_t width);

/// Columns as wide as their cells, two blanks apart; no line ends in blanks. If that is more than
/// `widest` characters, columns are cut, the last of those that may be first.
std::string TextTable(absl::Span<const TableColumn> columns, absl::Span<const TableCells> rows,
                      size_t widest = TableColumn::kWhole);

}  // namespace coconet
