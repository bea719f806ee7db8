#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/measure/verifier.h"
#include "autotune/store/record.h"

namespace coconet {

/// Compiles, verifies and times variants for the tuner, which names them by number. Every call but
/// Unload and TrustIn is collective and returns the same answer on all ranks. An error means that
/// the ranks lost contact, or that a GPU runs nothing more after a kernel failed; Cancelled, that
/// the user interrupted. Tests of the tuner fake it.
class VariantRunner {
 public:
  virtual ~VariantRunner() = default;

  /// Returns one entry per variant. Once `stop`, polled on rank 0, returns true, variants that were
  /// not compiled yet fail as kNotMeasured.
  virtual absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& stop) = 0;
  /// Loads the variant and verifies all its results at a small odd size.
  virtual absl::StatusOr<std::optional<Failure>> Load(int variant) = 0;
  /// Verifies the variant at the program's size. Requires Load.
  virtual absl::StatusOr<std::optional<Failure>> Verify(int variant) = 0;
  /// What Load and Verify have verified. Requires Load.
  virtual Trust TrustIn(int variant) const = 0;

  struct Sample {
    double us = 0;    // per step, the maximum over ranks
    double lost = 0;  // greatest share of the time that a rank was ready to run and had no core
    std::optional<Failure> failure;
  };
  /// Runs `warm_up` untimed, then `steps` timed steps, which all ranks start together. Requires
  /// Load.
  virtual absl::StatusOr<Sample> Time(int variant, int warm_up, int steps) = 0;
  /// The share of the ranks' cores that other programs have used since the last call that returned
  /// a share, on the machine where it is greatest; negative where too little time has passed to
  /// tell.
  virtual absl::StatusOr<double> LoadByOthers() = 0;
  /// Collective, but does not wait for other ranks.
  virtual void Unload(int variant) = 0;
};

/// A variant before it is tried: words and config are filled in, and the verdict of a variant that
/// cannot run.
struct Entrant {
  VariantResult result;
  std::vector<int> features;  // FeaturesOf (forecast.h)
};

}  // namespace coconet
