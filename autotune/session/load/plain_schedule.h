#pragma once

#include "absl/status/statusor.h"
#include "autotune/session/load/loading.h"

namespace coconet {

/// Collective. The program's baseline, compiled, verified here and loaded, with a record that is in
/// no cache and has no times. ResourceExhausted if it does not fit the memory limit; the compiler's
/// error if it must be compiled and cannot be.
absl::StatusOr<Winner> PlainSchedule(const Loading& loading);

}  // namespace coconet
