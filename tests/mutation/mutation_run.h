#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/simt_options.h"
#include "tests/mutation/planted/mutation_cases.h"
#include "tests/mutation/planted/mutations.h"

namespace coconet {

/// How many are tried; all orders of the scheduler alike.
inline constexpr int kMutationInterleavings = 3 * kSimtOrders;

/// FailedPrecondition where the mutation's edits are not, each once, in the texts that it names.
absl::Status CheckPlace(const Mutation& mutation);

/// Runs the mutation's case, with it planted, on simulated GPUs, in interleaving after interleaving
/// until something is found. Fails where the mutation cannot be planted as it says, or what it
/// leaves does not compile. Thread-safe.
absl::StatusOr<MutationOutcome> RunMutation(const Mutation& mutation, const std::string& cache_dir,
                                            uint64_t first_seed = 0);
/// The case as it is, in all of them.
absl::StatusOr<MutationOutcome> RunUnmutated(const MutationCase& at, const std::string& cache_dir,
                                             uint64_t first_seed = 0);

}  // namespace coconet
