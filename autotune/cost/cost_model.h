#pragma once

#include "autotune/cost/work.h"

namespace coconet {

/// Predicts how long work takes on the ranks of one world. The same for all ranks. Thread-safe.
class CostModel {
 public:
  virtual ~CostModel() = default;
  /// Microseconds of a launch that runs alone, its start included.
  virtual double Us(const Work& work) const = 0;
  /// How many times as long computation takes while a collective runs, and the reverse; >= 1.
  virtual double ComputationBesideCollective() const = 0;
  virtual double CollectiveBesideComputation() const = 0;
};

}  // namespace coconet
