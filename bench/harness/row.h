#pragma once

#include <cstdint>
#include <string>
#include <utility>

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
  absl::string_view title;
  std::string (*cell)(const Row& row);
};
std::string Table(absl::Span<const Row> rows, absl::Span<const Column> columns);
std::string MarkdownTable(absl::Span<const Row> rows, absl::Span<const Column> columns);

/// "12.9 ms", "0.11 us"; "" for 0.
std::string TimeText(double us);
/// "16Mi", "1Ki", "1000".
std::string CountText(int64_t count);

}  // namespace coconet::bench
