#ifndef COCONET_TESTS_VARIANT_BATCH_H_
#define COCONET_TESTS_VARIANT_BATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/differential_body.h"
#include "tests/kernel_set.h"
#include "tests/machine.h"

namespace coconet {

/// Many variants on worlds of threads, with their kernels compiled together.
class VariantBatch {
 public:
  explicit VariantBatch(Machine machine = TheMachine()) : machine_(std::move(machine)) {}

  /// The variant of one schedule and config, or of none when the config is not legal for it. Fails
  /// when lowering does. `only_new`: when it has a kernel that no variant has yet.
  absl::Status Add(const Graph& program, const Schedule& schedule, const Config& config,
                   const Target& target, bool only_new = false);

  /// Compiles, and runs every variant for `steps` steps. What went wrong, with all that it takes to
  /// see it again; "" when nothing did.
  std::string Run(uint64_t seed, int steps) { return RunOn(machine_, seed, steps); }
  /// The same on another machine for the same binaries.
  std::string RunOn(const Machine& machine, uint64_t seed, int steps);

  size_t kernels() const { return kernels_.size(); }
  const Tally& tally() const { return tally_; }

 private:
  std::string RunOn(const Machine& machine, const Target& target,
                    const std::vector<std::string>& binaries, uint64_t seed, int steps);

  Machine machine_;
  KernelSet kernels_;
  std::map<Target, std::vector<Variant>> variants_;  // by world
  Tally tally_;
};

}  // namespace coconet

#endif  // COCONET_TESTS_VARIANT_BATCH_H_
