#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "autotune/search/sizes/small_sizes.h"
#include "autotune/search/variants.h"
#include "coconet/ir/typed_graph.h"
#include "jit/config/target.h"
#include "jit/lower/lower.h"

namespace coconet {

/// A small size at which variants are verified.
struct CheckedSize {
  SmallSize size = {};
  /// Slices are short, or empty, or begin within packs. Variants whose kernels are the same here as
  /// at another size are verified here, too.
  bool tiny = false;
};
/// The sizes for stages of `ranks` ranks. The first is no multiple of anything; of those that are
/// not tiny, a variant is verified at the first at which it can be lowered.
std::vector<CheckedSize> CheckedSizes(int ranks);

/// A variant as plans and sources: the same kernels at the program's sizes, and at small ones, of
/// which only those behind the first are tiny.
struct VariantPlans {
  struct Small {
    size_t at = 0;  // index of the sizes
    Lowered lowered;
    TypedGraph program;
  };
  std::shared_ptr<const Lowered> full;
  std::vector<Small> small;
};

/// Lowers the variant at its own sizes, and at the first of `sizes` that allow it: odd ones, else
/// multiples at which slices end at row ends; and at the tiny ones that allow it. Without `sizes`,
/// at its own only. `on_gpus`: at sizes where products of 8-bit floats have rows as cuBLASLt wants,
/// if they have at the variant's own.
absl::StatusOr<std::unique_ptr<const VariantPlans>> PlansOf(const Variant& variant,
                                                            const Target& target,
                                                            const std::vector<CheckedSize>& sizes,
                                                            bool on_gpus);

}  // namespace coconet
