#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "tests/mutation/planted/mutation_cases.h"
#include "tests/mutation/planted/mutation_edits.h"
#include "tests/mutation/planted/mutations.h"

namespace coconet {

/// Does to a variant what the tuner does before it may dispatch it: lowers it, compiles it, binds
/// it, and verifies it at small sizes and at the case's own, on ranks that are threads. An error is
/// that of a wrong case or mistake.
absl::StatusOr<MutationOutcome> VerifyOnHost(const MutationCase& at, PlantingCompiler& compiler,
                                             uint64_t seed);

}  // namespace coconet
