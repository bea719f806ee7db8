#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/mutation_cases.h"
#include "tests/mutations.h"

namespace coconet {

/// Does to a variant what the tuner does before it may dispatch it: lowers it, compiles it, binds
/// it, and verifies it at small sizes and at the case's own, on ranks that are threads; with the
/// edits in the text of the kernels. An error is that of a wrong case or edit.
absl::StatusOr<MutationOutcome> VerifyOnHost(const MutationCase& at,
                                             const std::vector<MutationEdit>& edits,
                                             const std::string& cache_dir, uint64_t seed);

}  // namespace coconet
