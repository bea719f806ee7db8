#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace coconet {

/// The sizes from `lo` to `hi`, both included; one size if they are equal.
struct SizeRange {
  int64_t lo = 1, hi = 1;
  bool single() const { return lo == hi; }
  bool Contains(int64_t size) const { return lo <= size && size <= hi; }
  bool operator==(const SizeRange&) const = default;
};

/// The sizes that a program's symbols may have, by symbol: a box.
using SizeRanges = std::map<std::string, SizeRange>;

/// The greatest size of a range: no tensor has more elements.
inline constexpr int64_t kGreatestSize = int64_t{1} << 48;

/// InvalidArgument, with the symbol and what was wanted and found, unless there is a symbol and
/// 1 <= lo <= hi <= kGreatestSize for each.
absl::Status Validate(const SizeRanges& ranges);

/// The sizes that both boxes have; none if there are none, or if their symbols differ.
std::optional<SizeRanges> CommonOf(const SizeRanges& a, const SizeRanges& b);

/// Appends boxes that together have the sizes of `box` without those of `hole`.
void CutOut(const SizeRanges& hole, SizeRanges box, std::vector<SizeRanges>& rest);

/// "K=8 N=1024..65536"
std::string Text(const SizeRanges& ranges);
/// Parses what Text printed, and validates it.
absl::StatusOr<SizeRanges> ParseSizeRanges(absl::string_view text);

}  // namespace coconet
