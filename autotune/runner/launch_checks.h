#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/measure/reference.h"
#include "autotune/measure/test_data.h"
#include "autotune/measure/verifier.h"
#include "autotune/runner/launch_programs.h"
#include "runtime/rank.h"

namespace coconet {

/// Checks of single launches of steps that are too large to be interpreted: what a launch has left
/// in memory is compared, element by element of a sample, with what the interpreter computes from
/// what the launch has read there. A kernel is checked with the operands and sizes that it has in a
/// step, once however many launches and variants run it.
class LaunchChecks {
 public:
  /// `data` is what inputs and states had before the step; all ranks pass one seed. `stop` as of
  /// Reference::StopWhen. All must outlive this.
  LaunchChecks(Rank& rank, const TestData& data, uint64_t seed, std::function<bool()> stop,
               const Numerics& numerics = {})
      : rank_(rank), data_(data), seed_(seed), stop_(std::move(stop)), numerics_(numerics) {}

  /// The launches whose kinds were not checked yet, one of each, ascending; which of those of one
  /// kind, the seed says.
  std::vector<const LaunchProgram*> Unchecked(const std::vector<LaunchProgram>& launches);

  /// Collective, when the launch's steps are done and no later step has begun. `buffers` are those
  /// of the plan on this rank. Errors as of VerifyStep.
  absl::StatusOr<std::optional<Failure>> Check(const LaunchProgram& launch, const Plan& plan,
                                               absl::Span<Memory* const> buffers);

  /// Of this rank's elements.
  const Reference::Coverage& coverage() const { return coverage_; }
  /// Kinds of launches that were checked, and those that were not: without a result that can be
  /// checked (LaunchPrograms), or whose elements take the interpreter too long.
  int checked() const { return static_cast<int>(kinds_.size()) - skipped_; }
  int skipped() const { return skipped_; }

 private:
  Rank& rank_;
  const TestData& data_;
  const uint64_t seed_;
  const std::function<bool()> stop_;
  const Numerics numerics_;
  std::set<std::string> kinds_;  // those that were met
  Reference::Coverage coverage_;
  int skipped_ = 0;
};

}  // namespace coconet
