#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coconet/hlo/hlo_arrays.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

/// A computation of scalars, such as that of a reduction, on arrays of one shape instead: what it
/// gives, for each element; of several results a tuple's elements. Unimplemented where it has
/// operations that are not elementwise.
absl::StatusOr<std::vector<HloValue>> Lifted(const HloModule& module,
                                             const HloComputation& computation,
                                             absl::Span<const HloValue> arguments,
                                             HloArrays& arrays);

/// The computation that an attribute names.
absl::StatusOr<const HloComputation*> ComputationOf(const HloModule& module,
                                                    const HloInstruction& instruction,
                                                    absl::string_view attribute);

}  // namespace coconet
