#include "tests/harness/variant_batch.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "coconet/base/status.h"
#include "gtest/gtest.h"
#include "jit/compile/compiler.h"

ABSL_FLAG(uint64_t, most_variants, 0, "how many variants of a batch are run, drawn; 0: all");

namespace coconet {
namespace {

constexpr int kShownFailures = 3;        // of one world
constexpr double kCompileLimit_s = 600;  // many kernels, beside other tests

}  // namespace

int64_t AtMostDrawn(int64_t variants) {
  const uint64_t most = absl::GetFlag(FLAGS_most_variants);
  return most == 0 ? variants : std::min(variants, static_cast<int64_t>(most) - 1);
}

absl::Status VariantBatch::Add(const Graph& program, const Schedule& schedule, const Config& config,
                               const Target& target, bool only_new) {
  if (!Validate(config, schedule,
                {.ranks = target.ranks, .nodes = target.nodes, .stages_apart = target.stages_apart})
           .ok())
    return absl::OkStatus();
  ASSIGN_OR_RETURN(LoweredVariant variant, MakeVariant(program, schedule, config, target));
  const bool is_new = kernels_.Add(variant.lowered);
  if (is_new || !only_new) variants_[target].push_back(std::move(variant));
  return absl::OkStatus();
}

void VariantBatch::Draw(size_t most, std::mt19937_64& random) {
  std::vector<std::pair<Target, LoweredVariant>> all;
  for (auto& [target, variants] : variants_)
    for (LoweredVariant& variant : variants) all.emplace_back(target, std::move(variant));
  std::shuffle(all.begin(), all.end(), random);
  all.erase(all.begin() + static_cast<ptrdiff_t>(std::min(all.size(), most)), all.end());
  variants_.clear();
  kernels_ = {};
  for (auto& [target, variant] : all) {
    kernels_.Add(variant.lowered);
    variants_[target].push_back(std::move(variant));
  }
}

std::string VariantBatch::RunOn(const Machine& machine, uint64_t seed, int steps) {
  if (const uint64_t most = absl::GetFlag(FLAGS_most_variants); most > 0) {
    std::mt19937_64 random(seed);
    Draw(most, random);
  }
  absl::StatusOr<std::unique_ptr<Compiler>> compiler =
      machine.make_compiler({.cache_dir = absl::StrCat(testing::TempDir(), "/cache"),
                             .optimize = Optimize::kFast,
                             .time_limit_s = kCompileLimit_s});
  if (!compiler.ok()) return compiler.status().ToString();
  const absl::Time begun = absl::Now();
  const absl::StatusOr<std::vector<std::string>> binaries = kernels_.Compile(**compiler);
  if (!binaries.ok()) return binaries.status().ToString();
  const absl::Time compiled = absl::Now();
  std::string failures;
  for (const auto& [target, unused] : variants_)
    failures += RunOn(machine, target, *binaries, seed, steps);
  std::printf("%zu kernels: compiled in %.1f s, their variants run in %.1f s\n", kernels_.size(),
              absl::ToDoubleSeconds(compiled - begun),
              absl::ToDoubleSeconds(absl::Now() - compiled));
  return failures;
}

std::string VariantBatch::RunOn(const Machine& machine, const Target& target,
                                const std::vector<std::string>& binaries, uint64_t seed,
                                int steps) {
  std::string failures;  // written by rank 0
  std::vector<Tally> tallies(target.world());
  const absl::Status world = machine.run_world(
      {.ranks = target.world(), .stages = target.stages, .nodes = target.world_nodes()},
      [&](Rank& rank) -> absl::Status {
        ASSIGN_OR_RETURN(const std::unique_ptr<Module> module, LoadAll(rank, binaries));
        int failed = 0;
        for (const LoweredVariant& variant : variants_[target]) {
          const absl::Status status =
              run_variant_(rank, *module, variant, seed, steps, tallies[rank.rank()]);
          if (status.ok() || (machine.may_lack_room && absl::IsResourceExhausted(status))) continue;
          if (rank.rank() == 0)
            absl::StrAppend(&failures, status.ToString(), "\n", Reproducer(variant, seed), "\n");
          const bool wrong_answer =
              absl::IsInternal(status);  // after anything else the world may not be usable
          if (!wrong_answer || ++failed == kShownFailures) return status;
        }
        return absl::OkStatus();
      });
  for (const Tally& tally : tallies) tally_ += tally;
  return failures.empty() && !world.ok() ? world.ToString() : failures;
}

}  // namespace coconet
