#pragma once

#include <map>
#include <string>
#include <utility>

#include "autotune/cost/cost_model.h"
#include "autotune/cost/rates.h"

namespace coconet {

/// Microseconds of a kernel's computation and of its memory traffic, each alone.
double ComputationUs(const Rates& rates, const Work& work);
double MemoryUs(const Rates& rates, const Work& work);
double KernelUs(const Rates& rates, const Work& work);

/// Predicts by rates.
/// - Kernels: launch, and computation and memory traffic, which overlap as Rates::overlap says.
/// - Products: the time per multiply-add is the average over measured products, weighted by the
///   inverse squares of their distances in the logarithms of m, n, k and the batch. A measured
///   shape takes its own time.
/// - Collectives: a call per tensor, and the bytes. A kind and group that were not measured
///   together take the rates of the group's AllGather, else of the group's other collectives, else
///   of the kind in another group; without any rates, 0.
class MeasuredCostModel final : public CostModel {
 public:
  explicit MeasuredCostModel(Rates rates) : rates_(std::move(rates)) {}

  double Us(const Work& work) const override;
  double ComputationBesideCollective() const override { return rates_.computation_beside; }
  double CollectiveBesideComputation() const override { return rates_.collective_beside; }
  const Rates& rates() const { return rates_; }

 private:
  Rates rates_;
};

/// A digest of the work, equal for launches of equal work.
std::string Digest(const Work& work);

/// The measurements of launches with one digest, relative to their predictions.
struct Measurements {
  int count = 0;
  double log_ratio = 0;  // the mean logarithm of measured over predicted
};

/// Multiplies another model's predictions by the mean ratio of measured to predicted times of the
/// same work: the mean of n such ratios has the weight n / (n + 1), so that one outlier does not
/// decide.
class CorrectedCostModel final : public CostModel {
 public:
  /// `model` outlives this. `measured` by digest.
  CorrectedCostModel(const CostModel& model, std::map<std::string, Measurements> measured)
      : model_(model), measured_(std::move(measured)) {}

  double Us(const Work& work) const override;
  double ComputationBesideCollective() const override {
    return model_.ComputationBesideCollective();
  }
  double CollectiveBesideComputation() const override {
    return model_.CollectiveBesideComputation();
  }

 private:
  const CostModel& model_;
  const std::map<std::string, Measurements> measured_;
};

}  // namespace coconet
