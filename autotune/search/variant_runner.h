#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/measure/verifier.h"
#include "autotune/store/record.h"

namespace coconet {

/// Compiles, verifies and times variants for the tuner, which names them by number. Every call but
/// FactsOf, Unload and TrustIn is collective and returns the same answer on all ranks. An error
/// means that the ranks lost contact, or that a GPU runs nothing more after a kernel failed;
/// Cancelled, that the user interrupted. Tests of the tuner fake it.
class VariantRunner {
 public:
  virtual ~VariantRunner() = default;

  /// Returns one entry per variant. Once `stop`, polled on rank 0, returns true, variants that were
  /// not compiled yet fail as kNotMeasured.
  virtual absl::StatusOr<std::vector<std::optional<Failure>>> Compile(
      absl::Span<const int> variants, const std::function<bool()>& stop) = 0;
  /// Whether compilers may run while variants are timed, and do not change their times: on GPUs.
  /// The kernels of hosts run on the cores that compilers need.
  virtual bool compiles_ahead() const { return false; }
  /// Whether a first step takes as long as later ones: on the cores of one node. Elsewhere
  /// libraries make connections in it, and GPUs load code.
  virtual bool starts_warm() const { return false; }
  /// Begins to compile variants that Compile will be asked for; ends what an earlier call has
  /// begun. Returns at once. Only with compiles_ahead.
  virtual absl::Status CompileAhead(absl::Span<const int> /*variants*/) { return absl::OkStatus(); }
  /// Facts from lowering a variant: how its collectives are done, bytes that all ranks move.
  struct Facts {
    std::string protocol;  // "": not known
    int64_t bytes = 0;
  };
  /// Requires Compile.
  virtual Facts FactsOf(int variant) const = 0;
  /// Loads the variant and verifies all its results at small sizes; at tiny sizes alone if a
  /// variant with the same kernels was verified before, and only the shape of launches differs.
  virtual absl::StatusOr<std::optional<Failure>> Load(int variant) = 0;
  /// Verifies the variant at the program's size, and at the small sizes that Load left out.
  /// Requires Load.
  virtual absl::StatusOr<std::optional<Failure>> Verify(int variant) = 0;
  /// What Load and Verify have verified. Requires Load.
  virtual Trust TrustIn(int variant) const = 0;

  struct Sample {
    double us = 0;        // per step, the maximum over ranks
    double lost = 0;      // greatest share of the time that a rank was ready to run and had no core
    double lost_all = 0;  // the sum of these shares
    // Between the sample before and this one, warm-up included, the maximum over ranks: how long it
    // was, and how long a rank was ready to run and had no core.
    double gap_us = 0, lost_before_us = 0;
    std::optional<Failure> failure;
  };
  /// Runs `warm_up` untimed, then `steps` timed steps, which all ranks start together. Requires
  /// Load.
  virtual absl::StatusOr<Sample> Time(int variant, int warm_up, int steps) = 0;
  /// Moves the loaded variants to other memory: by which sets of caches data share, times in one
  /// memory may differ from those in another by a tenth and more. False if there is no room for it,
  /// or times depend little on it; then some may have moved.
  virtual absl::StatusOr<bool> MoveMemory() { return false; }
  /// How long ranks of one node take to meet, in microseconds: it says whether their cores share a
  /// cache, which on virtual machines changes by the minute. 0: not known.
  virtual absl::StatusOr<double> MeetingUs() { return 0; }
  /// The share of the ranks' cores that other programs have used since the last call that returned
  /// a share, on the machine with the greatest share; negative if too little time has passed to
  /// tell.
  virtual absl::StatusOr<double> LoadByOthers() = 0;
  /// Collective, but does not wait for other ranks.
  virtual void Unload(int variant) = 0;
};

/// A variant before it is tried: words and config are filled in, and the verdict of a variant that
/// cannot run.
struct Entrant {
  VariantResult result;
  std::vector<int> features = {};  // FeaturesOf (forecast.h)
  double prior_us = 1;             // Variant::prior_us
};

}  // namespace coconet
