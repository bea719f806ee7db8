#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/cost/cost_model.h"

namespace coconet {

/// Rates that are the same for all work of a kind, in bytes and operations per microsecond.
struct NominalRates {
  double launch_us = 3;             // of kernels and products
  double bytes_per_us = 8e3;        // of memory
  double flops_per_us = 6e4;        // of products in f32
  double flops_per_us_16 = 6e4;     // of products in f16 and bf16
  double latency_us = 60;           // of a collective
  double link_bytes_per_us = 1e3;   // that a rank sends
  double tensor_us = 2;             // of each operand of a collective
  int ranks = 2;                    // of a collective
  double computation_beside = 1.1;  // CostModel::ComputationBesideCollective
  double collective_beside = 1.05;  // CostModel::CollectiveBesideComputation

  /// Sets a network over which a rank sends `gbits` 10^9 bits per second, with 20 us of latency, as
  /// public clouds have between nodes.
  void SetLink(double gbits) {
    latency_us = 20;
    link_bytes_per_us = gbits * 1e9 / 8 / 1e6;
  }
};

/// The rates of a GPU by name: 0.75 of the operations and 0.85 of the bytes per second of its data
/// sheet, dense; f32 without TF32. Collectives are left to the caller. NotFound for other names.
absl::StatusOr<NominalRates> NominalRatesOf(absl::string_view device);
/// The names that NominalRatesOf knows.
std::vector<std::string> NominalDevices();

/// Predicts by nominal rates.
/// - Kernels: a launch, and the bytes that they read and write.
/// - Products and opaque operations: a launch, and operations or bytes, whichever takes longer.
/// - Collectives: a latency, a time per tensor, and the bytes that a rank sends with the algorithms
///   that send least: (ranks - 1) / ranks of the operand, and twice that for an AllReduce.
class NominalCostModel final : public CostModel {
 public:
  explicit NominalCostModel(const NominalRates& rates) : rates_(rates) {}

  double Us(const Work& work) const override;
  double ComputationBesideCollective() const override { return rates_.computation_beside; }
  double CollectiveBesideComputation() const override { return rates_.collective_beside; }
  const NominalRates& rates() const { return rates_; }

 private:
  const NominalRates rates_;
};

}  // namespace coconet
