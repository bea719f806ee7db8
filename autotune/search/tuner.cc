#include "autotune/search/tuner.h"

#include <utility>

#include "autotune/search/tuning.h"

namespace coconet {

absl::StatusOr<Tuned> Tune(std::vector<Entrant> entrants, int baseline, VariantRunner& runner,
                           Exchange& exchange, const TunerOptions& options) {
  return Tuning(std::move(entrants), baseline, runner, exchange, options).Run();
}

}  // namespace coconet
