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

/// Checks of single launches of steps that are too large to be interpreted: a sample of the
/// elements that a launch has left in memory is compared with what the interpreter computes from
/// the launch's operands there. A kernel is checked with the operands and sizes that it has in a
/// step, once however many launches and variants run it.
class LaunchChecks {
 public:
  /// `data`: the inputs and states before the step; all ranks pass one seed. `stop` as of
  /// Reference::StopWhen. All must outlive this.
  LaunchChecks(Rank& rank, const TestData& data, uint64_t seed, std::function<bool()> stop,
               const Numerics& numerics = {})
      : rank_(rank), data_(data), seed_(seed), stop_(std::move(stop)), numerics_(numerics) {}

  /// One launch of each kind that was not checked yet, ascending; the seed picks it.
  std::vector<const LaunchProgram*> Unchecked(const std::vector<LaunchProgram>& launches);

  /// Collective, when the launch's steps are done and no later step has begun. `buffers` are those
  /// of the plan on this rank. Errors as of VerifyStep.
  absl::StatusOr<std::optional<Failure>> Check(const LaunchProgram& launch, const Plan& plan,
                                               absl::Span<Memory* const> buffers);

  /// The coverage of this rank's elements.
  const Reference::Coverage& coverage() const { return coverage_; }
  /// Kinds of launches that were checked, and that were skipped: kinds without a result that can be
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
