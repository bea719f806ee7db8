#pragma once

#include <functional>
#include <map>
#include <random>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "coconet/ir/graph.h"
#include "jit/config/config.h"
#include "jit/config/target.h"
#include "tests/harness/judge.h"
#include "tests/harness/variant_batch.h"

ABSL_DECLARE_FLAG(int, schedules);

namespace coconet {

/// Adds schedules of programs to a batch: on each world, with random buckets, orders and configs.
/// Each schedule is added with Protocol::kGenerated, and where a collective is in no kernel, also
/// with Protocol::kLibrary. All configs of a world have equal fields of DrawCompiledConfig, so that
/// schedules share kernels.
class ScheduleSampler {
 public:
  /// `gemm_candidates`: ways that matrix products may go on GPUs.
  ScheduleSampler(std::vector<Target> worlds, std::mt19937_64& random, VariantBatch& batch,
                  int gemm_candidates = 1);

  /// Whether the `index`th of `count` schedules is tried in the `world`th world.
  using Tries = std::function<bool(size_t index, size_t count, size_t world)>;
  /// `program` is bound.
  absl::Status Add(const Graph& program, const Tries& tries);
  /// Adds about as many schedules in each world as --schedules says, or all when there are fewer.
  /// One in --one_in worlds is taken. All calls take the same worlds, and the same schedules where
  /// a program has as many of them at other sizes, so that sizes share kernels.
  absl::Status AddSome(const Graph& program);

 private:
  const std::vector<Target> worlds_;
  std::map<Target, Config> compiled_;
  std::mt19937_64& random_;
  VariantBatch& batch_;
  const int gemm_candidates_;
  const size_t first_;         // schedule that AddSome takes in the first world
  std::vector<bool> sampled_;  // worlds
};

/// A program in the text form, without version and name, and where it is tried.
struct SampledProgram {
  const char* name;
  const char* statements;
  std::vector<Sizes> sizes;
  std::vector<Target> worlds = {1, 2, 3, 4, 8};
};

/// RunBatch of some schedules of the program at each of its sizes in each of its worlds.
Tally RunSome(const SampledProgram& sampled);

/// Runs what `fill` adds, drawing from a fresh seed, for three steps, and prints how much that was.
/// What fails is a failure of the test, with the seed.
Tally RunBatch(
    const std::function<absl::Status(std::mt19937_64& random, VariantBatch& batch)>& fill,
    Machine machine = TheMachine());

}  // namespace coconet
