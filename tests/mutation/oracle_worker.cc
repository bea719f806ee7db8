// Whether a mutation of one token changes an answer: oracle_worker FILE CACHE_DIR SEED runs its
// case at sizes and on data that the verifier does not use, with ranks that are late by chance, and
// prints "outcome: changed", and how, or "outcome: unchanged". It compares with the interpreter as
// the differential tests do.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coconet/base/status.h"
#include "runtime/world.h"
#include "tests/harness/differential_body.h"
#include "tests/kernels/kernel_set.h"
#include "tests/mutation/random_cases.h"

namespace coconet {
namespace {

constexpr int kSizes = 8, kSeeds = 8, kSteps = 4;  // kSeeds per size
constexpr int kSizesTried = 24;                    // some sizes allow no such schedule
constexpr double kTimeoutSeconds = 4;

/// At times a rank begins a step late, or stops in its midst.
void BeLate(BoundPlan& plan, std::mt19937_64& random) {
  const uint64_t draw = random() % 6;
  plan.DelayWaits(draw == 0 ? 1 + static_cast<int>(random() % 4) : 0,
                  static_cast<int64_t>(random() % 300'000));
  if (draw == 1) absl::SleepFor(absl::Microseconds(random() % 300));
}

/// OK, or the first difference.
absl::Status RunAt(const RandomMutation& random, const CaseVariant& v, Compiler& compiler,
                   uint64_t first_seed) {
  ASSIGN_OR_RETURN(const LoweredVariant variant,
                   MakeVariant(v.program, v.schedule, v.config, random.at.target));
  std::vector<std::string> binaries;
  if (!variant.lowered.kernels.empty()) {
    ASSIGN_OR_RETURN(const Binary binary, compiler.Compile(variant.lowered.kernels));
    binaries.push_back(binary.path);
  }
  const Target& target = random.at.target;
  return RunWorld(
      {.ranks = target.world(),
       .stages = target.stages,
       .nodes = target.world_nodes(),
       .pin = false},
      [&](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, LoadAll(rank, binaries));
        std::mt19937_64 late(first_seed * 64 + static_cast<uint64_t>(rank.rank()));
        const RunOptions options{.timeout_s = kTimeoutSeconds,
                                 .before_step = [&](BoundPlan& plan, int) { BeLate(plan, late); }};
        Tally tally;
        for (uint64_t seed = first_seed; seed < first_seed + kSeeds; ++seed)
          RETURN_IF_ERROR(RunVariantWith(options, rank, *module, variant, seed, kSteps, tally));
        return absl::OkStatus();
      });
}

absl::StatusOr<absl::Status> Run(const std::string& path, const std::string& cache_dir,
                                 uint64_t seed) {
  ASSIGN_OR_RETURN(const RandomMutation mutation, ReadRandomMutation(path));
  ASSIGN_OR_RETURN(const CaseVariant own, VariantOf(mutation.at.View()));
  ASSIGN_OR_RETURN(std::unique_ptr<Compiler> compiler,
                   MakeHostCompiler({.cache_dir = cache_dir, .optimize = Optimize::kFast}));
  TokenCompiler planting(std::move(compiler), mutation.mutation);
  std::mt19937_64 random(seed);
  int sizes = 0;
  for (int tried = 0; tried < kSizesTried && sizes < kSizes; ++tried) {
    const absl::StatusOr<CaseVariant> v =
        Resized(own, mutation.at.sizes, DrawSizes(mutation.at.sizes, random));
    if (!v.ok() || !Lower(v->schedule, v->config, mutation.at.target).ok()) continue;
    ++sizes;
    const absl::Status status = RunAt(mutation, *v, planting, random());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace coconet

int main(int argc, char** argv) {
  uint64_t seed = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[3], &seed)) return 2;
  const absl::StatusOr<absl::Status> found = coconet::Run(argv[1], argv[2], seed);
  if (!found.ok()) {
    std::printf("outcome: error\n%s\n", found.status().ToString().c_str());
  } else {
    std::printf("outcome: %s\n%s\n", found->ok() ? "unchanged" : "changed",
                found->ToString().c_str());
  }
  std::fflush(stdout);
  std::_Exit(0);
}
