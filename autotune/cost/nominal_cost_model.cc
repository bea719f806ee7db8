#include "autotune/cost/nominal_cost_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "coconet/base/nearest.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// NVIDIA's data sheets, SXM form: TFLOP/s of f32 and of 16 bits with tensor cores, GB/s of memory.
struct Device {
  absl::string_view name;
  double tflops, tflops_16, gigabytes;
};
constexpr Device kDevices[] = {{"v100", 15.7, 125, 900},
                               {"a100", 19.5, 312, 2039},
                               {"h100", 67, 989, 3350},
                               {"b200", 75, 2250, 8000}};
constexpr double kReachedFlops = 0.75, kReachedBytes = 0.85;

}  // namespace

absl::StatusOr<NominalRates> NominalRatesOf(absl::string_view device) {
  for (const Device& d : kDevices) {
    if (d.name != device) continue;
    NominalRates rates;
    rates.flops_per_us = kReachedFlops * d.tflops * 1e6;
    rates.flops_per_us_16 = kReachedFlops * d.tflops_16 * 1e6;
    rates.bytes_per_us = kReachedBytes * d.gigabytes * 1e3;
    return rates;
  }
  return absl::NotFoundError(absl::StrCat("want one of the devices ",
                                          absl::StrJoin(NominalDevices(), ", "), ", have ", device,
                                          DidYouMean(device, NominalDevices())));
}

std::vector<std::string> NominalDevices() {
  std::vector<std::string> names;
  for (const Device& d : kDevices) names.emplace_back(d.name);
  return names;
}

double NominalCostModel::Us(const Work& work) const {
  const double bytes_us = (work.bytes_read + work.bytes_written) / rates_.bytes_per_us;
  const auto flops_us = [&](double flops) {
    const bool is_16 = work.dtype == DType::kF16 || work.dtype == DType::kBF16;
    return flops / (is_16 ? rates_.flops_per_us_16 : rates_.flops_per_us);
  };
  const auto link_us = [&](double sent, int tensors) {
    return rates_.latency_us + rates_.tensor_us * tensors + sent / rates_.link_bytes_per_us;
  };
  switch (work.kind) {
    case Work::Kind::kKernel:
      return rates_.launch_us + bytes_us;
    case Work::Kind::kProduct: {
      const double flops = 2.0 * static_cast<double>(work.batch) * static_cast<double>(work.m) *
                           static_cast<double>(work.n) * static_cast<double>(work.k);
      return rates_.launch_us + std::max(flops_us(flops), bytes_us);
    }
    case Work::Kind::kCollective: {
      const double halves = work.collective == CollectiveStep::Kind::kAllReduce ? 2 : 1;
      return link_us(halves * (rates_.ranks - 1) / rates_.ranks * work.bytes, work.tensors);
    }
    case Work::Kind::kOpaque: {
      const double computes = std::max(flops_us(work.flops), bytes_us);
      return work.link_bytes > 0 ? link_us(work.link_bytes, 1) : rates_.launch_us + computes;
    }
  }
  CC_CHECK(false);
}

}  // namespace coconet
