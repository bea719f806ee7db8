#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coconet/base/dtype.h"

namespace coconet::bench {

struct GemmSize {
  int64_t m = 0, n = 0, k = 0;
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

/// c[m, n] = a[m, k] . b[k, n], row-major, by oneDNN as a careful user calls it: on one thread,
/// prepared once, with the weights b as stored or rearranged to oneDNN's preference. If oneDNN
/// has no product of f16 or bf16 for this processor, the operands are widened to f32 and the result
/// is rounded; b is widened when it is rearranged, else in every product.
class OneDnnGemm {
 public:
  enum class Weights : uint8_t { kAsTheyLie, kPacked };
  /// a and b are f32, f16 or bf16; c has the same type, or `result`, which is that type or f32.
  /// Sets the calling thread's OpenMP thread count to one.
  static absl::StatusOr<std::unique_ptr<OneDnnGemm>> Make(
      DType dtype, const GemmSize& size, Weights weights,
      std::optional<DType> result = std::nullopt);
  virtual ~OneDnnGemm() = default;
  /// The type that oneDNN multiplies: that of a and b, or f32 if it has no such product.
  virtual DType multiplies() const = 0;

  /// Sets new weights: rearranges them if kPacked, else only keeps their address.
  virtual absl::Status SetWeights(const void* b) = 0;
  /// Requires SetWeights.
  virtual absl::Status Run(const void* a, void* c) = 0;
};

}  // namespace coconet::bench
