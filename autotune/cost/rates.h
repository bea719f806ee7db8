#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "autotune/cost/work.h"

namespace coconet {

/// The parameters of a cost model: times of this machine and world, in microseconds, fitted to
/// measurements. Equal on all ranks.
struct Rates {
  // ---- Kernels
  double launch_us = 0;                   // of a kernel without elements
  std::array<double, kEfforts> effort{};  // of a lane (Effort)
  /// The times of a byte read, and of a byte written, in kernels with `footprint` bytes. They are
  /// interpolated between levels, in the logarithms, and constant below the first and above the
  /// last.
  struct Level {
    double footprint = 0;
    double read = 0, written = 0;
    bool operator==(const Level&) const = default;
  };
  std::vector<Level> levels;
  /// p of (computation^p + memory^p)^(1/p). 1: they take turns; large: only the longer one counts.
  double overlap = 4;
  double overlap_of_rows = 2;  // of kernels that fold rows
  /// The same for divisions and roots, which have a unit of their own, and other operations.
  double overlap_of_divisions = 1.6;

  // ---- Matrix products of a library
  struct Product {
    DType dtype{};
    int64_t batch = 1, m = 0, n = 0, k = 0;
    bool transpose_a = false, transpose_b = false;
    double us = 0;
    bool operator==(const Product&) const = default;
  };
  std::vector<Product> products;  // that were measured

  // ---- Collectives of a library
  struct Collective {
    CollectiveStep::Kind kind{};
    Group group{};
    double call = 0;               // of a tensor
    std::array<double, 3> byte{};  // of a byte, besides these of bytes beyond kBends
    bool operator==(const Collective&) const = default;
  };
  static constexpr std::array<double, 3> kBends = {0, 0x1p18, 0x1p21};
  std::vector<Collective> collectives;
  double computation_beside = 1, collective_beside = 1;  // CostModel

  bool operator==(const Rates&) const = default;
};

/// One JSON object of numbers, on one line.
std::string Json(const Rates& rates);
/// InvalidArgument for other text, naming what is wrong with it.
absl::StatusOr<Rates> ParseRates(absl::string_view json);

}  // namespace coconet
