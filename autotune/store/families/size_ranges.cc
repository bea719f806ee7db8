#include "autotune/store/families/size_ranges.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"

namespace coconet {

absl::Status Validate(const SizeRanges& ranges) {
  if (ranges.empty()) return absl::InvalidArgumentError("want sizes of one symbol or more");
  for (const auto& [symbol, range] : ranges) {
    if (range.lo >= 1 && range.lo <= range.hi && range.hi <= kGreatestSize) continue;
    return absl::InvalidArgumentError(absl::StrCat(symbol, ": want sizes from 1 to ", kGreatestSize,
                                                   ", the smaller first, have ", range.lo, "..",
                                                   range.hi));
  }
  return absl::OkStatus();
}

std::optional<SizeRanges> CommonOf(const SizeRanges& a, const SizeRanges& b) {
  if (a.size() != b.size()) return std::nullopt;
  SizeRanges common;
  for (const auto& [symbol, range] : a) {
    const auto other = b.find(symbol);
    if (other == b.end()) return std::nullopt;
    const SizeRange both = {std::max(range.lo, other->second.lo),
                            std::min(range.hi, other->second.hi)};
    if (both.lo > both.hi) return std::nullopt;
    common.emplace(symbol, both);
  }
  return common;
}

void CutOut(const SizeRanges& hole, SizeRanges box, std::vector<SizeRanges>& rest) {
  const std::optional<SizeRanges> common = CommonOf(hole, box);
  if (!common.has_value()) {
    rest.push_back(std::move(box));
    return;
  }
  for (const auto& [symbol, range] : *common) {
    SizeRange& side = box.at(symbol);
    const SizeRange whole = side;
    if (whole.lo < range.lo) {
      side = {whole.lo, range.lo - 1};
      rest.push_back(box);
    }
    if (range.hi < whole.hi) {
      side = {range.hi + 1, whole.hi};
      rest.push_back(box);
    }
    side = range;
  }
}

std::string Text(const SizeRanges& ranges) {
  return absl::StrJoin(ranges, " ", [](std::string* out, const auto& of) {
    absl::StrAppend(out, of.first, "=", of.second.lo);
    if (!of.second.single()) absl::StrAppend(out, "..", of.second.hi);
  });
}

absl::StatusOr<SizeRanges> ParseSizeRanges(absl::string_view text) {
  SizeRanges ranges;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    const std::pair<absl::string_view, absl::string_view> named =
        absl::StrSplit(word, absl::MaxSplits('=', 1));
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(named.second, absl::MaxSplits("..", 1));
    SizeRange range;
    bool read = !named.first.empty() && absl::SimpleAtoi(ends.first, &range.lo);
    range.hi = range.lo;
    if (read && named.second.find("..") != absl::string_view::npos)
      read = absl::SimpleAtoi(ends.second, &range.hi);
    if (!read || !ranges.emplace(named.first, range).second)
      return absl::InvalidArgumentError(
          absl::StrCat("want SYMBOL=SIZE or SYMBOL=SIZE..SIZE, once each, have '", word, "'"));
  }
  RETURN_IF_ERROR(Validate(ranges));
  return ranges;
}

}  // namespace coconet
