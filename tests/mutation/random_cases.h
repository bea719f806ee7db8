#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coconet/ir/types.h"
#include "jit/config/target.h"
#include "tests/mutation/planted/mutation_cases.h"
#include "tests/mutation/planted/mutation_edits.h"
#include "tests/mutation/token_mutations.h"

namespace coconet {

/// A MutationCase that owns what it names.
struct RandomCase {
  std::string program, schedule, config;
  Sizes sizes;
  Target target = 1;
  MutationCase View() const {
    return {"random", program.c_str(), sizes, schedule.c_str(), config.c_str(), target};
  }
};

/// Draws a workload, the type of its tensors, a schedule, and a config with kernels for 2 to 4
/// ranks; at times of two nodes or two stages.
absl::StatusOr<RandomCase> DrawCase(std::mt19937_64& random);

/// Sizes for the symbols of `like`, of as many tensors; small, and seldom round.
Sizes DrawSizes(const Sizes& like, std::mt19937_64& random);

/// The case's schedule at other sizes. The symbols of `at` are bound to different numbers.
absl::StatusOr<CaseVariant> Resized(const CaseVariant& at, const Sizes& from, const Sizes& to);

/// What one process tells another to do.
struct RandomMutation {
  RandomCase at;
  TokenMutation mutation;
};
absl::Status WriteRandomMutation(const std::string& path, const RandomMutation& random);
absl::StatusOr<RandomMutation> ReadRandomMutation(const std::string& path);

/// Compiles with one token changed, where the kernel is in the source.
class TokenCompiler final : public PlantingCompiler {
 public:
  TokenCompiler(std::unique_ptr<Compiler> compiler, const TokenMutation& mutation)
      : PlantingCompiler(std::move(compiler)), mutation_(mutation) {}

 protected:
  absl::StatusOr<std::string> Plant(const std::string& source) const override {
    return WithMutation(source, mutation_);
  }

 private:
  const TokenMutation& mutation_;
};

}  // namespace coconet
