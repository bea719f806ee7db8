#include "bench/optimizers/cell.h"

#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"
#include "coconet/workloads/model_shapes.h"

namespace coconet::bench {
namespace {

/// The sizes of a list such as "@bert-large/64".
absl::StatusOr<std::vector<int64_t>> ListSizes(absl::string_view list) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(list, absl::MaxSplits('/', 1));
  absl::string_view model = parts.first;
  int64_t divisor = 1;
  std::optional<std::vector<int64_t>> sizes;
  const bool divides =
      parts.second.empty() || (absl::SimpleAtoi(parts.second, &divisor) && divisor > 0);
  if (absl::ConsumePrefix(&model, "@") && divides) sizes = ModelSizes(model);
  if (!sizes.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("list \"", list, "\": want a model's, such as @bert-large or @bert-large/64"));
  }
  for (int64_t& size : *sizes) size = (size + divisor - 1) / divisor;
  return *std::move(sizes);
}

}  // namespace

std::string Text(const Cell& cell) {
  return absl::StrCat(cell.workload, ":", Name(cell.dtype), ":",
                      cell.list.empty() ? absl::StrCat(cell.n) : cell.list);
}

absl::StatusOr<Cell> ParseCell(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  const std::optional<DType> dtype = parts.size() == 3 ? ParseDType(parts[1]) : std::nullopt;
  Cell cell;
  if (dtype.has_value() && !parts[0].empty()) {
    if (absl::StartsWith(parts[2], "@")) return ListCell(parts[0], *dtype, parts[2]);
    cell.workload = parts[0];
    cell.dtype = *dtype;
    if (absl::SimpleAtoi(parts[2], &cell.n) && cell.n >= 0) return cell;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "cell \"", text,
      "\": want workload:dtype:elements, such as adam:f32:1024 or lamb:f32:@bert-large"));
}

absl::StatusOr<Cell> ListCell(absl::string_view workload, DType dtype, absl::string_view list) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, ListSizes(list));
  return Cell{dtype, std::accumulate(sizes.begin(), sizes.end(), int64_t{0}), std::string(workload),
              std::string(list)};
}

Cell Flat(Cell cell) {
  cell.list.clear();
  return cell;
}

std::vector<int64_t> TensorSizes(const Cell& cell) {
  if (cell.list.empty()) return {cell.n};
  absl::StatusOr<std::vector<int64_t>> sizes = ListSizes(cell.list);
  CC_CHECK(sizes.ok());  // ListCell has checked the list
  return *std::move(sizes);
}

Sizes SizesOf(const Cell& cell) {
  if (cell.list.empty()) return {{"N", cell.n}};
  return {{"N", TensorSizes(cell)}};
}

std::string WordOf(const std::vector<Cell>& cells) {
  return absl::StrJoin(cells, ",",
                       [](std::string* out, const Cell& cell) { out->append(Text(cell)); });
}

bool FromWord(absl::string_view word, std::vector<Cell>& cells) {
  for (absl::string_view text : absl::StrSplit(word, ',')) {
    const absl::StatusOr<Cell> cell = ParseCell(text);
    if (!cell.ok()) return false;
    cells.push_back(*cell);
  }
  return true;
}

}  // namespace coconet::bench
