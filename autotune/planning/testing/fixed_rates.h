#pragma once

#include "autotune/cost/cost_model.h"

namespace coconet {

/// A cost model of rates that are the same for all work of a kind.
class FixedRates : public CostModel {
 public:
  struct Rates {
    double launch_us = 3;             // of kernels and products
    double bytes_per_us = 8e3;        // of memory
    double flops_per_us = 6e4;        // of products
    double latency_us = 60;           // of a collective
    double link_bytes_per_us = 1e3;   // of an AllReduce's operands
    double tensor_us = 2;             // of each operand of a collective
    double computation_beside = 1.1;  // CostModel::ComputationBesideCollective
    double collective_beside = 1.05;  // CostModel::CollectiveBesideComputation
  };
  explicit FixedRates(const Rates& rates) : rates_(rates) {}

  double Us(const Work& work) const override {
    switch (work.kind) {
      case Work::Kind::kKernel:
        return rates_.launch_us + (work.bytes_read + work.bytes_written) / rates_.bytes_per_us;
      case Work::Kind::kProduct:
        return rates_.launch_us + 2.0 * work.batch * work.m * work.n * work.k / rates_.flops_per_us;
      case Work::Kind::kCollective:
        return rates_.latency_us + rates_.tensor_us * work.tensors +
               HalvesOf(work) / 2 * work.bytes / rates_.link_bytes_per_us;
    }
    return 0;
  }
  /// An AllReduce moves twice what each of its two halves does.
  static double HalvesOf(const Work& work) {
    return work.collective == CollectiveStep::Kind::kAllReduce ? 2 : 1;
  }
  double ComputationBesideCollective() const override { return rates_.computation_beside; }
  double CollectiveBesideComputation() const override { return rates_.collective_beside; }

 private:
  const Rates rates_;
};

}  // namespace coconet
