#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coconet/hlo/hlo_arrays.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

/// How deep calls may be nested.
inline constexpr int kDeepestCall = 64;

/// Applies a computation of scalars, such as a reduction's, to each element of arrays of one shape;
/// returns the elements of its result's tuple if it has several results. Calls are inlined.
/// Unimplemented if it has operations that are not elementwise.
absl::StatusOr<std::vector<HloValue>> Lifted(const HloModule& module,
                                             const HloComputation& computation,
                                             absl::Span<const HloValue> arguments,
                                             HloArrays& arrays);

/// The computation that an attribute names.
absl::StatusOr<const HloComputation*> ComputationOf(const HloModule& module,
                                                    const HloInstruction& instruction,
                                                    absl::string_view attribute);

/// The computation of a call or a fusion.
absl::StatusOr<const HloComputation*> CalledBy(const HloModule& module,
                                               const HloInstruction& instruction);

/// What a get-tuple-element gives; `values`: those of the computation's instructions.
absl::StatusOr<HloValue> TupleElement(const HloInstruction& instruction,
                                      absl::Span<const HloValue> values);

}  // namespace coconet
