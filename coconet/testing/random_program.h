#pragma once

#include <cstdint>

#include "coconet/ir/graph.h"

namespace coconet {

enum class ProgramKind : uint8_t {
  /// Sizes are the symbols N and M. Elementwise operations, casts, constants, reductions and
  /// gathers of any operands that infer, so that values may overflow or be NaN.
  kSymbolic,
  /// A training step of vectors or matrices in floats: local gradients, some of them accumulated,
  /// are reduced, then computed with elementwise, and update states of every layout that programs
  /// declare.
  kStep,
  /// All operations but Total, which is of lists, all dtypes and layouts, of tensors of 0 to 4
  /// dimensions with odd, few or no elements.
  kModel,
};
inline constexpr ProgramKind kProgramKinds[] = {ProgramKind::kSymbolic, ProgramKind::kStep,
                                                ProgramKind::kModel};

struct RandomProgramOptions {
  ProgramKind kind = ProgramKind::kModel;
  int operations = 12;          // about as many are drawn, besides declarations and updates
  int max_communications = 3;   // that reduce or move; each may double the schedules
  int max_dims = 4;             // of a declared tensor; of a step's at most 2
  int64_t max_elements = 4000;  // of a declared tensor, where sizes are bound
  bool all_dtypes = true;       // false: what is declared and cast to is f32
};

/// A valid program, a pure function of its arguments, as it was drawn: with values that nothing
/// uses, and values that are alike. Old values of states are read before and after their updates.
///
/// Steps and models are well conditioned: with inputs and states within [-1, 1], integers within
/// [-9, 9], values stay small, divisors and arguments of roots and logarithms stay away from 0, so
/// that error bounds stay near the roundings.
Graph RandomProgram(uint64_t seed, const RandomProgramOptions& options = {});

}  // namespace coconet
