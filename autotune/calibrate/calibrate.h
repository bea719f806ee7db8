#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autotune/cost/fit.h"
#include "autotune/cost/measured_cost_model.h"
#include "autotune/cost/rates.h"
#include "autotune/runner/binaries.h"
#include "autotune/store/tuning_cache.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/target.h"
#include "runtime/rank.h"

namespace coconet {

struct CalibrationTerms {
  /// The distinct products of a program, which are timed besides those of ProductProbes, so that a
  /// model knows their times.
  std::vector<Work> products = {};
  /// Polled on rank 0: once it returns true, the calibration ends as Cancelled. May be empty.
  std::function<bool()> interrupted = nullptr;
};

/// The distinct matrix products of a schedule without kernels.
std::vector<Work> DistinctProducts(const Schedule& plain, const Target& target);

/// Collective: compiles small programs, times them on all ranks and fits rates to these times:
/// kernels, products, collectives, and both at once. Takes some seconds, half of them the
/// compiler's if the binary cache is empty. Equal on all ranks.
absl::StatusOr<Rates> Calibrate(Rank& rank, Binaries& binaries, const CalibrationTerms& terms = {});

/// Collective: the text that rates depend on: machine, world, library and versions, of all ranks.
/// Names no path, user or host.
absl::StatusOr<std::string> CalibrationKeyText(Rank& rank);

/// Collective: the rates that `cache`, rank 0's and null on the others, has for a key text; none if
/// it has none.
absl::StatusOr<std::optional<Rates>> KnownRates(Rank& rank, TuningCache* cache,
                                                const std::string& key_text);

/// Collective: the rates that `cache` has for this machine and world, after measuring products of
/// `terms` that it lacks; else those of Calibrate. Keeps new measurements. `cache` is rank 0's;
/// null on the others, and if nothing is kept.
absl::StatusOr<Rates> CalibrateOnce(Rank& rank, Binaries& binaries, TuningCache* cache,
                                    const CalibrationTerms& terms = {});

/// Measurements by digest of the work, from a cache's predictions for a calibration.
std::map<std::string, Measurements> MeasurementsOf(absl::Span<const Prediction> predictions);

/// Collective: the works of bound programs, which are one launch each, and their times. Programs
/// that are not one launch on these ranks are left out. `interrupted` as of CalibrationTerms.
absl::StatusOr<std::vector<MeasuredWork>> MeasureLaunches(
    Rank& rank, Binaries& binaries, absl::Span<const Graph> programs,
    const std::function<bool()>& interrupted = nullptr);

}  // namespace coconet
