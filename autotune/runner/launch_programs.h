#pragma once

#include <string>
#include <vector>

#include "autotune/measure/tensors.h"
#include "coconet/ir/typed_graph.h"
#include "jit/lower/lower.h"

namespace coconet {

/// A result of a launch.
struct LaunchResult {
  PlacedTensor tensor;
  /// "": all rows are in use. Else the output with the number of rows in use of each group, which
  /// are its first; the first `rows_dim` dimensions are those of the groups, and the next one is
  /// that of rows.
  std::string rows;
  int rows_dim = 0;
};

/// A launch as a program of its own, from values in memory, inputs and states, to the values that
/// it leaves in memory.
struct LaunchProgram {
  std::string label;
  int begin = 0, end = 0;  // its steps of the plan
  /// Equal for launches that run the same kernels on operands of the same sizes.
  std::string kind;
  /// Its inputs are those of the whole program, its states (their values before the step), and
  /// `reads`; its outputs are `writes`. By name.
  Graph program;
  std::vector<PlacedTensor> reads;
  std::vector<LaunchResult> writes;
};

/// `program`, which has no lists, is what was lowered. Values that are stored by node
/// (Layout::by_place) are in neither `reads` nor `writes`: the program of a launch that takes one
/// computes it from inputs, states and `reads`.
std::vector<LaunchProgram> LaunchPrograms(const TypedGraph& program, const Lowered& lowered);

}  // namespace coconet
