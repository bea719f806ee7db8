#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/strings/string_view.h"

namespace coconet {

/// The rows that a step of a job takes (row indices, offsets of bags, numbers of rows in use):
/// element `index` of the input or state `tensor`, of its values on `rank` if it is Local, in step
/// `step`. None: no answer for that element. Thread-safe, a function of its arguments, and equal on
/// all ranks.
using TypicalRows = std::function<std::optional<int32_t>(absl::string_view tensor, int64_t index,
                                                         int rank, int step)>;

}  // namespace coconet
