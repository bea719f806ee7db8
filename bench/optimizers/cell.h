#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/base/dtype.h"
#include "coconet/ir/types.h"

namespace coconet::bench {

/// What to measure: "adam:f32:1024", or, over the tensors of a model, "lamb:f32:@bert-large". In
/// "lamb:f32:@bert-large/64" each tensor has a 64th of its elements.
struct Cell {
  DType dtype = DType::kF32;
  int64_t n = 0;                  // elements of all tensors together
  std::string workload = "adam";  // a name that MakeWorkload knows
  std::string list = {};          // "@bert-large/64"; "": one tensor
  bool operator==(const Cell&) const = default;
};
std::string Text(const Cell& cell);
absl::StatusOr<Cell> ParseCell(absl::string_view text);
// Cells as a word of a worker's arguments.
std::string WordOf(const std::vector<Cell>& cells);
bool FromWord(absl::string_view word, std::vector<Cell>& cells);

/// The cell over the tensors of `list`, "@bert-large/64". InvalidArgument for an unknown list.
absl::StatusOr<Cell> ListCell(absl::string_view workload, DType dtype, absl::string_view list);
/// The same elements as one tensor.
Cell Flat(Cell cell);

/// Elements of each tensor; one tensor without a list.
std::vector<int64_t> TensorSizes(const Cell& cell);
/// The binding of the workload's N.
Sizes SizesOf(const Cell& cell);

}  // namespace coconet::bench
