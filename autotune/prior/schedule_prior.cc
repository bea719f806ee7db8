#include "autotune/prior/schedule_prior.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "jit/config/launch_shapes.h"

namespace coconet {
namespace {

/// Registers of a thread, by the bytes that it loads before the first use.
constexpr double kRegisters = 38, kRegistersPerByte = 0.4, kRegistersStep = 8, kMostRegisters = 128;
/// Blocks that wait for each other and do not fit are refused when they are bound.
constexpr double kRefused = 8;
/// Tiles by a generated kernel are taken to need so many times as long as a library's product: by
/// warps, counted; by warp groups that copy the operands, or have them brought, not measured yet.
constexpr double kTiles = 3, kWideTiles = 1.25, kTmaTiles = 1.08;

}  // namespace

BytesInFlight InFlightOf(const LaunchTraits& launch, const Config& config,
                         const PriorRates& rates) {
  const double each = std::ceil(static_cast<double>(config.blocks) / rates.multiprocessors),
               active = std::min(config.blocks, rates.multiprocessors);
  if (config.bulk && launch.gathers)
    return {each * static_cast<double>(rates.bulk_bytes_in_flight), "blocks"};
  const double pack = launch.loaded * config.vec;
  const double loads = pack * PacksToFetch(static_cast<int64_t>(pack), config.unroll);
  const double registers = std::min(
      std::ceil((kRegisters + kRegistersPerByte * loads) / kRegistersStep) * kRegistersStep,
      kMostRegisters);
  const double by_registers = std::floor(rates.registers / (registers * config.threads)),
               by_threads = std::floor(static_cast<double>(rates.threads) / config.threads);
  const double resident = std::min({each, by_registers, by_threads});
  const double with_work = launch.elements / (config.vec * config.unroll) / active;  // threads
  if (with_work < resident * config.threads) return {with_work * loads, "elements"};
  return {resident * config.threads * loads, each <= resident             ? "blocks"
                                             : by_registers <= by_threads ? "registers"
                                                                          : "threads"};
}

SchedulePrior::SchedulePrior(const Schedule& schedule, const ConfigSpace& space)
    : launches_(TraitsOfLaunches(schedule, space.ranks)),
      space_(space),
      rates_(PriorRatesFor(space)),
      overlaps_(static_cast<int>(schedule.overlaps().size())) {
  for (const LaunchTraits& launch : launches_) bytes_ += (launch.read + launch.written) / 2;
  bytes_ *= static_cast<double>(space.ranks) / space.nodes;
}

double SchedulePrior::Us(const Config& config) const {
  double us = 0, collectives = 0;
  std::vector<std::pair<double, double>> overlaps(overlaps_);  // by overlap: sum, greatest
  for (const LaunchTraits& launch : launches_) {
    const double alone = LaunchUs(launch, config);
    if (launch.overlap >= 0) {
      auto& [sum, most] = overlaps[launch.overlap];
      sum += alone;
      most = std::max(most, alone);
    } else if (config.concurrent && launch.kind == LaunchTraits::Kind::kCollective) {
      collectives += alone;
    } else {
      us += alone;
    }
  }
  us = std::max(us, collectives) + 0.1 * std::min(us, collectives);
  // What runs beside something else is hidden, but for the first piece and the last.
  const bool beside = config.beside > 0 || space_.nodes > 1;
  for (const auto& [sum, most] : overlaps)
    us += beside ? most + (sum - most) / std::max(config.pieces, 2) : sum;
  return us;
}

double SchedulePrior::LaunchUs(const LaunchTraits& launch, const Config& config) const {
  const double pieces = launch.overlap >= 0 ? config.pieces : 1;
  switch (launch.kind) {
    case LaunchTraits::Kind::kProduct:
      return pieces * rates_.launch_us + ProductUs(launch, config);
    case LaunchTraits::Kind::kCollective:
      if (LeftToLibrary(config.protocol, space_.nodes) != LibraryDoes::kNone)
        return pieces * rates_.library_us + LibraryUs(launch, config);
      return pieces * rates_.launch_us + KernelUs(launch, config);
    case LaunchTraits::Kind::kKernel:
      return pieces * rates_.launch_us + KernelUs(launch, config);
  }
  return 0;
}

double SchedulePrior::LibraryUs(const LaunchTraits& launch, const Config& config) const {
  double calls = launch.tensors;
  if (config.bucket > 0)
    calls = std::min(calls, std::ceil(launch.read / static_cast<double>(config.bucket)));
  return (calls - 1) * rates_.library_us + launch.crossing / rates_.link_bytes_per_us;
}

double SchedulePrior::FlopsPerUs(DType operands) const {
  if (operands == DType::kF16 || operands == DType::kBF16) return rates_.flops_per_us_16;
  // Hosts widen 8-bit floats; tensor cores add twice as many products of them.
  const bool is_8 = IsFloat8(operands) && rates_.multiprocessors > 0;
  return is_8 ? 2 * rates_.flops_per_us_16 : rates_.flops_per_us;
}

double SchedulePrior::ProductUs(const LaunchTraits& launch, const Config& config) const {
  double flops_us = launch.flops / FlopsPerUs(launch.dtype);
  if (launch.tiled || (config.tiles > 0 && launch.overlap >= 0))
    flops_us *= config.stages == 0 ? kTiles : config.tma ? kTmaTiles : kWideTiles;
  if (config.beside > 0 && launch.overlap >= 0)
    flops_us *= rates_.multiprocessors / std::max(rates_.multiprocessors - config.beside, 1);
  return std::max(flops_us, (launch.read + launch.written) / rates_.bytes_per_us);
}

double SchedulePrior::KernelUs(const LaunchTraits& launch, const Config& config) const {
  double meetings = launch.meetings, read = launch.read;
  if (launch.all_reduced > 0) {
    read += (space_.ranks / space_.nodes - 1) * launch.all_reduced;
    // Ranks wait until all operands are there, and but for copies until all have been read.
    if (config.one_shot == OneShot::kPull) meetings *= 2;
    if (config.one_shot == OneShot::kStaged) read += launch.all_reduced;
    if (config.one_shot == OneShot::kLL) {
      meetings *= 0.5;
      read += 2 * launch.all_reduced;
    }
  }
  const double elementwise_us =
      launch.operations /
      (rates_.operations_per_us * (rates_.multiprocessors > 0 ? 1 : config.blocks));
  if (launch.tiled) {
    return ProductUs(launch, config) + elementwise_us + launch.meetings * rates_.meeting_us +
           launch.crossing / rates_.bytes_per_us;
  }
  const double bytes_us = rates_.multiprocessors > 0
                              ? BytesUsOnGpu(launch, config, read + launch.written)
                              : BytesUsOnHost(launch, config, read);
  const double operations_us = elementwise_us + launch.flops / rates_.flops_per_us;
  double us = meetings * rates_.meeting_us + std::max(bytes_us, operations_us);
  if (launch.flag_per_chunk) {
    // Each flag takes a fence; the first chunk comes when its block is done with it.
    const double chunks =
        std::max(launch.elements / static_cast<double>(config.chunk) / config.blocks, 1.0);
    us += 0.5 * rates_.meeting_us * chunks + 0.25 * bytes_us / chunks;
  }
  return us + (config.blocks > 1 ? rates_.wake_us : 0);
}

double SchedulePrior::BytesUsOnGpu(const LaunchTraits& launch, const Config& config,
                                   double bytes) const {
  const BytesInFlight in_flight = InFlightOf(launch, config, rates_);
  const double active = std::min(config.blocks, rates_.multiprocessors);
  const double us = std::max(bytes / rates_.bytes_per_us,
                             bytes * rates_.latency_us / (active * std::max(in_flight.bytes, 1.0)));
  const bool fits = in_flight.limit != "registers" && in_flight.limit != "threads";
  return fits || launch.meetings == 0 ? us : kRefused * us;
}

double SchedulePrior::BytesUsOnHost(const LaunchTraits& launch, const Config& config,
                                    double read) const {
  const bool cached = bytes_ <= static_cast<double>(rates_.cache_bytes);
  const bool streams = config.streaming == Streaming::kAll ||
                       (config.streaming == Streaming::kShared && launch.meetings > 0);
  // A store that does not bypass the caches reads the line first; one that does keeps what the
  // next launch reads out of them.
  const double rate = cached ? rates_.cached_bytes_per_us : rates_.bytes_per_us;
  double us = read / rate;
  us += streams ? (cached ? 2 : 1) * launch.written / rates_.bytes_per_us
                : (cached ? 1 : 2) * launch.written / rate;
  return us / std::min(config.blocks, cached ? config.blocks : 2);
}

}  // namespace coconet
