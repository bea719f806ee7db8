#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/harness/differential_body.h"
#include "tests/harness/machine.h"
#include "tests/kernels/kernel_set.h"

namespace coconet {

/// Runs one variant on one rank, and tells what was compared: RunVariant, or what a test puts in
/// its place. Internal: a wrong answer, after which the world goes on.
using RunsVariant =
    std::function<absl::Status(Rank& rank, const Module& kernels, const LoweredVariant& variant,
                               uint64_t seed, int steps, Tally& tally)>;

/// `variants`, or less where --most_variants limits a batch to fewer: an exclusive lower bound of
/// the number of variants that a batch has run.
int64_t AtMostDrawn(int64_t variants);

/// Many variants on worlds of threads, with their kernels compiled together.
class VariantBatch {
 public:
  explicit VariantBatch(Machine machine = TheMachine(), RunsVariant run_variant = RunVariant)
      : machine_(std::move(machine)), run_variant_(std::move(run_variant)) {}

  /// Adds the variant of a schedule and a config, if the config is legal for the schedule. Fails
  /// when lowering does. `only_new`: only if no earlier variant has one of its kernels.
  absl::Status Add(const Graph& program, const Schedule& schedule, const Config& config,
                   const Target& target, bool only_new = false);

  /// Compiles, and runs every variant (--most_variants: so many) for `steps` steps. Returns the
  /// failures, each with what reproduces it; "" when there are none.
  std::string Run(uint64_t seed, int steps) { return RunOn(machine_, seed, steps); }
  /// The same on another machine for the same binaries.
  std::string RunOn(const Machine& machine, uint64_t seed, int steps);

  size_t kernels() const { return kernels_.size(); }
  const Tally& tally() const { return tally_; }

 private:
  /// Keeps at most `most` variants, drawn at random, and only their kernels.
  void Draw(size_t most, std::mt19937_64& random);
  std::string RunOn(const Machine& machine, const Target& target,
                    const std::vector<std::string>& binaries, uint64_t seed, int steps);

  Machine machine_;
  RunsVariant run_variant_;
  KernelSet kernels_;
  std::map<Target, std::vector<LoweredVariant>> variants_;  // by world
  Tally tally_;
};

}  // namespace coconet
