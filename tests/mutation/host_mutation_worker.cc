// What runs one planted mistake on CPUs, as a shared object: a second one, made from a changed
// source of the library and loaded first, takes the place of the functions that it defines
// (host_mutation_run.cc). It is a process of its own, since a wrong kernel may end it.

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "coconet/base/status.h"
#include "tests/mutation/host_verification.h"
#include "tests/mutation/planted/mutation_edits.h"
#include "tests/mutation/random_cases.h"

namespace coconet {
namespace {

/// A case and a mutation that random_mutations.cc wrote to `path`.
absl::StatusOr<MutationOutcome> VerifyRandom(const std::string& path, const std::string& cache_dir,
                                             uint64_t seed) {
  ASSIGN_OR_RETURN(const RandomMutation random, ReadRandomMutation(path));
  ASSIGN_OR_RETURN(std::unique_ptr<Compiler> compiler,
                   MakeHostCompiler({.cache_dir = cache_dir, .optimize = Optimize::kFast}));
  TokenCompiler mutating(std::move(compiler), random.mutation);
  return VerifyOnHost(random.at.View(), mutating, seed);
}

absl::StatusOr<MutationOutcome> Run(const std::string& at, const std::string& mutation,
                                    const std::string& cache_dir, uint64_t seed) {
  if (at == "random") return VerifyRandom(mutation, cache_dir, seed);
  ASSIGN_OR_RETURN(const MutationCase found, FindMutationCase(at));
  std::vector<MutationEdit> edits;
  for (const Mutation& m : HostMutations()) {
    if (mutation == m.name) edits = m.edits;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Compiler> compiler,
                   MakeHostCompiler({.cache_dir = cache_dir, .optimize = Optimize::kFast}));
  MutatingCompiler mutating(std::move(compiler), edits, Dialect::kHost);
  return VerifyOnHost(found, mutating, seed);
}

}  // namespace
}  // namespace coconet

/// Arguments: case, mutation or "-", cache directory, seed; or "random", and a file for the
/// mutation. Prints "outcome: " and its kind, or
/// "nothing", or "error", and below it the report.
extern "C" __attribute__((visibility("default"))) int RunHostMutation(int argc, char** argv) {
  uint64_t seed = 0;
  if (argc != 5 || !absl::SimpleAtoi(argv[4], &seed)) return 2;
  const absl::StatusOr<coconet::MutationOutcome> outcome =
      coconet::Run(argv[1], argv[2], argv[3], seed);
  if (!outcome.ok()) {
    std::printf("outcome: error\n%s\n", outcome.status().ToString().c_str());
  } else if (!outcome->kind.has_value()) {
    std::printf("outcome: nothing\n");
  } else {
    std::printf("outcome: %s\n%s\n", Name(*outcome->kind).c_str(), outcome->report.c_str());
  }
  std::fflush(stdout);
  std::_Exit(0);  // what a wrong kernel left behind may not be fit to be destroyed
}
