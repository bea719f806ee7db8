#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coconet/ir/graph.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"
#include "jit/lower/lower.h"
#include "runtime/rank.h"
#include "tests/harness/judge.h"
#include "tests/harness/test_data.h"

namespace coconet {

/// A schedule and a config of a bound program, lowered.
struct LoweredVariant {
  Graph program;  // as written: what the interpreter evaluates
  Schedule schedule;
  Config config;
  Lowered lowered;
};
absl::StatusOr<LoweredVariant> MakeVariant(const Graph& program, const Schedule& schedule,
                                           const Config& config, const Target& target);

/// Everything that is needed to see a failure again: the program's text, the schedule's trace, the
/// config.
std::string Reproducer(const LoweredVariant& variant, uint64_t seed);

struct RunOptions {
  double timeout_s = 60;                                                 // of one wait
  std::function<void(BoundPlan& plan, int step)> before_step = nullptr;  // on each rank
  bool shared = false;  // temporaries lie as in a job, without canaries between them
};

/// What the steps of a variant leave behind on one rank.
struct StepResults {
  std::vector<Placed> results;         // states, then outputs
  std::vector<std::string> read = {};  // by step: what RankMemory::Read returned after it
  /// Internal where a step wrote what it must not write, or left out what it must.
  absl::Status memory = {};
};
/// Collective: runs a variant `steps` times. Outputs, temporaries and padding are filled with NaNs
/// before each step, canaries stand behind each buffer's end, and inputs must come out unchanged.
/// A plan with Plan::outlasting then runs steps beside each other, which must leave the same bits.
absl::StatusOr<StepResults> RunSteps(Rank& rank, const Module& kernels,
                                     const LoweredVariant& variant, const StepData& data, int steps,
                                     const RunOptions& options = {});

/// Collective: the differential test of one variant on any world. Runs it `steps` times with data
/// of `seed`, and compares every element of every result of every step on every rank with the
/// interpreter, evaluated on the original program with the states that the step before left behind.
/// Replicas must be equal to the bit. Seeds that are odd have RunOptions::shared.
///
/// Internal, on all ranks, with the first difference; other errors are the runtime's. Each rank has
/// a tally of its own.
absl::Status RunVariant(Rank& rank, const Module& kernels, const LoweredVariant& variant,
                        uint64_t seed, int steps, Tally& tally);
/// The same with options.
absl::Status RunVariantWith(const RunOptions& options, Rank& rank, const Module& kernels,
                            const LoweredVariant& variant, uint64_t seed, int steps, Tally& tally);

}  // namespace coconet
