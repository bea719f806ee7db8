#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/mutation_cases.h"
#include "tests/mutations.h"

namespace coconet {

/// FailedPrecondition where the mutation's edits are not, each once, in the texts that it names.
absl::Status CheckHostPlace(const Mutation& mutation);

/// Runs the mutation's case in a process of its own (host_mutation_worker.cc), with the mistake
/// planted in the text of kernels or in the library. Fails where it cannot be planted as it says.
/// Reads sources and programs relative to the folder of the test or of `bazel run`. Thread-safe.
absl::StatusOr<MutationOutcome> RunOnHost(const Mutation& mutation, const std::string& cache_dir,
                                          uint64_t seed = 1);
/// The case as it is.
absl::StatusOr<MutationOutcome> RunUnmutatedOnHost(const MutationCase& at,
                                                   const std::string& cache_dir, uint64_t seed = 1);

}  // namespace coconet
