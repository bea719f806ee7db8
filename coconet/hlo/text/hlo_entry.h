#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

// What a module says of its entry's parameters and results: their names, which share memory, and
// how they lie over devices.

/// A name for a declaration of a program: letters, digits, '_' and '.'.
std::string NameFrom(absl::string_view text);
/// What JAX calls a parameter: op_name of its metadata, such as "params['w']".
std::string NameOf(const HloInstruction& parameter);

/// By parameter: the index, in the tuple of results, of the result that takes its memory by
/// input_output_alias. A parameter that the module gives away (buffer_donor) takes the first free
/// result of its type, as XLA decides later. InvalidArgument for indices out of range.
absl::StatusOr<std::map<int64_t, std::vector<int64_t>>> ResultsOfParameters(
    const HloModule& module);

/// By instruction of a parameter that enters a manual region (JAX's shard_map): the shape that a
/// device sees there.
std::map<int32_t, HloShape> ManualShapes(const HloModule& module);

/// Whether XLA has partitioned the module. Before that, arrays that are split over devices are
/// whole in its text, outside of manual regions. False if neither JAX's meshes and placements nor
/// collectives or a schedule tell.
bool IsPartitioned(const HloModule& module);

/// Whether a sharding gives all devices the whole array.
bool IsReplicated(absl::string_view sharding);
/// Whether a sharding, such as "{devices=[2,1]<=[2]}", splits the array over devices.
bool IsSplit(absl::string_view sharding);

/// The target of a custom call, without quotes; empty for other instructions.
absl::string_view CustomCallTarget(const HloInstruction& instruction);
/// Whether a custom call only says how arrays lie over devices.
bool IsPlacement(absl::string_view target);

}  // namespace coconet
