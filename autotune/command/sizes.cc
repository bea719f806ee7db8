#include "autotune/command/sizes.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "autotune/command/paths.h"
#include "coconet/base/status.h"
#include "coconet/workloads/model_shapes.h"

namespace coconet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownSizes = 6;

/// "3x5": a matrix, whose elements count.
absl::StatusOr<int64_t> ParseExtents(absl::string_view text) {
  int64_t elements = 1;
  for (absl::string_view extent : absl::StrSplit(text, 'x')) {
    ASSIGN_OR_RETURN(const int64_t size, ParseSize(extent));
    if (__builtin_mul_overflow(elements, size, &elements))
      return absl::InvalidArgumentError("fewer elements");
  }
  return elements;
}

/// One tensor a line; '#' starts a comment.
absl::StatusOr<std::vector<int64_t>> ReadSizes(absl::string_view name, const std::string& folder) {
  const std::string file = ResolvePath(name, folder);
  std::ifstream in(file);
  std::error_code error;
  if (!in || fs::is_directory(file, error)) {
    return absl::NotFoundError(absl::StrCat("'", name, "' is no list of a model (",
                                            absl::StrJoin(ModelNames(), ", "),
                                            ") and no file to read"));
  }
  std::vector<int64_t> sizes;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const absl::string_view text =
        absl::StripAsciiWhitespace(absl::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    const absl::StatusOr<int64_t> size = ParseExtents(text);
    if (!size.ok())
      return absl::NotFoundError(absl::StrCat("line ", number, " of ", name, ": want ",
                                              size.status().message(), ", have '", text, "'"));
    sizes.push_back(*size);
  }
  if (sizes.empty()) return absl::NotFoundError(absl::StrCat("file ", name, " names no size"));
  return sizes;
}

}  // namespace

absl::StatusOr<int64_t> ParseSize(absl::string_view text) {
  const auto error = absl::InvalidArgumentError("a size such as 4096, 16Mi or 1G");
  size_t digits = 0;
  while (digits < text.size() &&
         (absl::ascii_isdigit(static_cast<unsigned char>(text[digits])) || text[digits] == '.'))
    ++digits;
  const struct {
    absl::string_view suffix;
    double factor;
  } kSuffixes[] = {{"", 1},    {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0},
                   {"k", 1e3}, {"K", 1e3},     {"M", 1e6},        {"G", 1e9}};
  for (const auto& [suffix, factor] : kSuffixes) {
    if (text.substr(digits) != suffix) continue;
    int64_t whole = 0;
    if (factor == 1)
      return absl::SimpleAtoi(text.substr(0, digits), &whole) ? absl::StatusOr<int64_t>(whole)
                                                              : error;
    double number = 0;
    if (!absl::SimpleAtod(text.substr(0, digits), &number)) return error;
    const double size = number * factor;
    if (size != std::floor(size) || size > 9e15) return error;
    return static_cast<int64_t>(size);
  }
  return error;
}

absl::StatusOr<BoundSize> ParseSizes(absl::string_view text, const std::string& folder) {
  if (absl::ConsumePrefix(&text, "@")) {
    if (std::optional<std::vector<int64_t>> model = ModelSizes(text); model.has_value())
      return BoundSize(*std::move(model));
    ASSIGN_OR_RETURN(std::vector<int64_t> sizes, ReadSizes(text, folder));
    return BoundSize(std::move(sizes));
  }
  std::vector<int64_t> sizes;
  int number = 0;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    ++number;
    const absl::StatusOr<int64_t> size = ParseExtents(part);
    if (!size.ok()) {
      const std::string where =
          absl::StrContains(text, ",") ? absl::StrCat(" as number ", number) : "";
      return absl::InvalidArgumentError(absl::StrCat(size.status().message(), where));
    }
    sizes.push_back(*size);
  }
  const bool is_list = absl::StrContains(text, ",") || absl::StrContains(text, "x");
  return is_list ? BoundSize(std::move(sizes)) : BoundSize(sizes[0]);
}

bool IsSizeRange(absl::string_view text) {
  return !absl::StartsWith(text, "@") && absl::StrContains(text, "..");
}

absl::StatusOr<SizeRange> ParseSizeRange(absl::string_view text) {
  const size_t dots = text.find("..");
  if (dots != absl::string_view::npos) {
    const absl::StatusOr<int64_t> lo = ParseSize(text.substr(0, dots)),
                                  hi = ParseSize(text.substr(dots + 2));
    if (lo.ok() && hi.ok() && Validate({{"", {*lo, *hi}}}).ok()) return SizeRange{*lo, *hi};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a size such as 4096 or 16Mi, or a range from 1 to ", kGreatestSize,
                   ", the smaller end first, such as 1Ki..64Mi"));
}

std::string ShortSize(int64_t size) {
  constexpr const char* kUnits[] = {"", "Ki", "Mi", "Gi"};
  int unit = 0;
  for (; unit < 3 && size > 0 && size % 1024 == 0; ++unit) size /= 1024;
  return absl::StrCat(size, kUnits[unit]);
}

std::string RangesText(const SizeRanges& ranges) {
  return absl::StrJoin(ranges, " ", [](std::string* out, const auto& of) {
    absl::StrAppend(out, of.first, "=", ShortSize(of.second.lo));
    if (!of.second.single()) absl::StrAppend(out, "..", ShortSize(of.second.hi));
  });
}

std::string SizesText(const Sizes& sizes) {
  return absl::StrJoin(sizes, " ", [](std::string* out, const auto& named) {
    const std::vector<int64_t>& list = named.second.sizes;
    int64_t elements = 0;
    for (int64_t size : list) elements += size;
    absl::StrAppend(out, named.first, "=",
                    list.size() <= kShownSizes
                        ? Text(named.second)
                        : absl::StrCat("(", list.size(), " tensors, ", elements, ")"));
  });
}

}  // namespace coconet
