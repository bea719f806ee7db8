#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace coconet {

/// Sums of narrow floats over ranks: `kOnce` demands that they are accumulated in f32 and rounded
/// at the end (and, across nodes, before they cross them); `kEach` admits that each addition
/// rounds, as libraries for GPUs do.
enum class SumRounding : uint8_t { kOnce, kEach };
absl::string_view Name(SumRounding rounding);  // "once"

/// Whether operands of minima and maxima over ranks may be NaN. `kNone`: the caller says that none
/// is; what a NaN gives is then undefined, but equal on all ranks that have the result.
enum class Nans : uint8_t { kPossible, kNone };
absl::string_view Name(Nans nans);  // "possible"

/// What the user of a program admits of reductions over ranks.
struct Numerics {
  SumRounding sum_rounding = SumRounding::kOnce;
  Nans nans = Nans::kPossible;
  auto operator<=>(const Numerics&) const = default;
};

}  // namespace coconet
