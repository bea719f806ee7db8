#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "autotune/prior/launch_traits.h"
#include "autotune/prior/prior_rates.h"
#include "coconet/schedule/schedule.h"
#include "jit/config/config.h"

namespace coconet {

/// The bytes that a multiprocessor loads at one time, and what limits them.
struct BytesInFlight {
  double bytes = 0;
  absl::string_view limit;  // "registers", "threads", "elements", "blocks"
};

/// The bytes in flight of a kernel with that config on a GPU. Registers: in NVRTC's code for Adam,
/// kernels with 64 to 192 bytes loaded before the first use take 38, and 0.4 more for each byte.
BytesInFlight InFlightOf(const LaunchTraits& launch, const Config& config, const PriorRates& rates);

/// Estimates the time of a step of a schedule under its configs, from its launches alone: nothing
/// is lowered, compiled or run. It decides what is tried, and in which order; never what wins.
/// Cheap: tens of thousands of configs per second.
class SchedulePrior {
 public:
  /// `schedule` is bound.
  SchedulePrior(const Schedule& schedule, const ConfigSpace& space);

  double Us(const Config& config) const;

  const std::vector<LaunchTraits>& launches() const { return launches_; }
  const PriorRates& rates() const { return rates_; }

 private:
  /// The time of the launch alone; a launch of an overlap may be cut into pieces or not.
  double LaunchUs(const LaunchTraits& launch, const Config& config) const;
  double LibraryUs(const LaunchTraits& launch, const Config& config) const;
  /// The rate of a product whose operands have this type.
  double FlopsPerUs(DType operands) const;
  double ProductUs(const LaunchTraits& launch, const Config& config) const;
  double KernelUs(const LaunchTraits& launch, const Config& config) const;
  double BytesUsOnGpu(const LaunchTraits& launch, const Config& config, double bytes) const;
  double BytesUsOnHost(const LaunchTraits& launch, const Config& config, double read) const;

  const std::vector<LaunchTraits> launches_;
  const ConfigSpace space_;
  const PriorRates rates_;
  double bytes_ = 0;  // that the ranks of a node have in memory, about
  int overlaps_ = 0;
};

}  // namespace coconet
