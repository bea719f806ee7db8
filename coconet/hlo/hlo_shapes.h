#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coconet/hlo/hlo_arrays.h"
#include "coconet/hlo/text/hlo_attributes.h"

namespace coconet {

/// Every step-th element along a dimension, from the first on.
HloValue Strided(const HloValue& a, int dim, int64_t step, HloArrays& arrays);

/// HLO's pad: a padding for each dimension of the array, with a scalar of its type.
absl::StatusOr<HloValue> Padded(const HloInstruction& instruction, const HloValue& a,
                                const HloValue& filler, absl::Span<const HloPadding> paddings,
                                HloArrays& arrays);

}  // namespace coconet
