#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/store/record.h"
#include "coconet/base/json.h"

namespace coconet::bench {

/// What a field of a row holds; std::nullptr_t for what was not or could not be measured.
using Value = JsonValue;

/// The value that a field should reach.
struct Bar {
  enum class Side : uint8_t { kAtLeast, kAtMost };
  std::string field;
  Side side{};
  double value = 0;
};
/// The bars of a text such as "ratio >= 2.5, ours_us <= 0.3".
std::vector<Bar> BarsOf(absl::string_view text);

/// One row of a benchmark's result. All benchmarks share the fields "case", "ranks", "n", "dtype",
/// "ours_us", "baseline_us", "ratio" (baseline over ours), "limit_us" and "of_limit" (limit over
/// ours), and add their own.
class Row {
 public:
  /// Adds a field, or replaces it in its place. A number that is not finite becomes null.
  Row& Set(absl::string_view name, Value value) {
    object_.Set(name, std::move(value));
    return *this;
  }
  const Value& Get(absl::string_view name) const { return object_.Get(name); }
  /// 0 unless the field holds a number.
  double Number(absl::string_view name) const;

  /// Sets "bar" ("ratio >= 2.5, of_limit >= 0.88"), "met" (null without bars), and "missed" (the
  /// fields that miss their bars or have no value).
  Row& SetBars(absl::Span<const Bar> bars);

  JsonText Json() const { return object_.Text(); }

 private:
  JsonObject object_;
};

/// Sets "<side>_us", and its confidence interval "<side>_low_us" and "<side>_high_us".
void SetTime(Row& row, absl::string_view side, const Timing& timing);

/// An array of objects, one per line.
std::string Json(absl::Span<const Row> rows);
absl::Status WriteFile(const std::string& file, absl::string_view text);

/// A column of a table: its title, and its text for a row.
struct Column {
  std::string title;
  std::function<std::string(const Row& row)> cell;
};
/// Columns as a text: "TITLE|FORMAT|FIELD, ...". Formats: "text" (also of numbers), "time", "s" (a
/// time in seconds), "ratio", "percent" (of a share; "" without), "count" ("16Mi"), "result" (the
/// row's error if it has one, else text), "met", "yes" ("yes" or "NO" of a truth), "*" (the column
/// of `computed` with this title), or one of StrFormat's for a number, "%.0f s"; after "100*" for a
/// hundred times that. FIELD is left out if it is the title with `_` for blanks, with "_us" behind
/// it if the format is "time"; FORMAT too if it is "text", or "met" of "met".
std::vector<Column> ColumnsOf(absl::string_view text, absl::Span<const Column> computed = {});
std::string Table(absl::Span<const Row> rows, absl::Span<const Column> columns);
std::string MarkdownTable(absl::Span<const Row> rows, absl::Span<const Column> columns);

// Texts of fields.
std::string TextOf(const Row& row, absl::string_view field);  // "" unless the field holds text
std::string MetOf(const Row& row);  // "yes", "no: " and the missed fields; "" without bars
/// The row's error if it has one, else the field.
std::string TextOrError(const Row& row, absl::string_view field);
/// "12.9 ms", "0.11 us"; "" for 0.
std::string TimeText(double us);
/// "16Mi", "1Ki", "1000".
std::string CountText(int64_t count);

}  // namespace coconet::bench
