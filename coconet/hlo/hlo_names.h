#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "coconet/hlo/text/hlo_module.h"

namespace coconet {

/// A name for a declaration: letters, digits, '_' and '.', as the text form wants.
std::string NameFrom(absl::string_view text);

/// What JAX calls a parameter: op_name of its metadata, such as "params['w']".
std::string NameOf(const HloInstruction& parameter);

bool IsReplicated(absl::string_view sharding);
/// "{devices=[2,1]<=[2]}": devices have parts of the array.
bool IsSplit(absl::string_view sharding);

/// A custom call that only says how arrays lie over devices.
bool IsPlacement(absl::string_view target);

/// The target of a custom call, without quotes; empty of other instructions.
absl::string_view CustomCallTarget(const HloInstruction& instruction);

}  // namespace coconet
