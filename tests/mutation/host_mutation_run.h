#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/mutation/planted/mutation_cases.h"
#include "tests/mutation/planted/mutations.h"

namespace coconet {

/// FailedPrecondition where the mutation's edits are not, each once, in the texts that it names.
absl::Status CheckHostPlace(const Mutation& mutation);

/// Runs a program, which prints "outcome: ", a line and more lines, or ends otherwise; for
/// `limit_s` at most. Thread-safe.
struct WorkerOutcome {
  std::string word;    // "": none was printed
  std::string report;  // the lines below, or how it ended
};
absl::StatusOr<WorkerOutcome> RunWorker(std::vector<std::string> argv, double limit_s);
/// The program that verifies a case: arguments as in host_mutation_worker.cc.
std::vector<std::string> VerifierCommand(const std::string& at, const std::string& mutation,
                                         const std::string& cache_dir, uint64_t seed,
                                         const std::string& object = "");

/// Runs the mutation's case in a process of its own (host_mutation_worker.cc), with the mistake
/// planted in the text of kernels or in the library. Fails where it cannot be planted as it says.
/// Reads sources and programs relative to the folder of the test or of `bazel run`. Thread-safe.
absl::StatusOr<MutationOutcome> RunOnHost(const Mutation& mutation, const std::string& cache_dir,
                                          uint64_t seed = 1);
/// The case as it is.
absl::StatusOr<MutationOutcome> RunUnmutatedOnHost(const MutationCase& at,
                                                   const std::string& cache_dir, uint64_t seed = 1);

}  // namespace coconet
