#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coconet/ir/graph.h"
#include "coconet/reference/interpreter.h"

namespace coconet {

struct DifferencesReport {
  int64_t checked = 0;
  int64_t skipped = 0;  // where the loss has a kink nearby, or is too large for differences
};

/// Compares what a program says is a gradient with central differences of its loss, in double.
/// `loss` is an output, a scalar; if it is Local, the sum over the ranks counts. For each input or
/// state x, the output "d_x", if there is one, is its gradient. At most `most` elements of each
/// input are compared, drawn by `seed`. InvalidArgument names the element that is off.
absl::StatusOr<DifferencesReport> CompareWithDifferences(const Graph& program, int ranks,
                                                         const ElementSource& source, uint64_t seed,
                                                         int64_t most = 40);

}  // namespace coconet
