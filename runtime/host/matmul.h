#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <optional>

#include "absl/status/statusor.h"
#include "coconet/base/dtype.h"
#include "runtime/node/gemm_problem.h"

namespace coconet {

/// A thread's scratch memory of `count` elements: page-aligned, uninitialised.
template <class T>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(int64_t count)
      : data_(static_cast<T*>(::operator new(count * sizeof(T), kPage))) {}
  T* data() const { return data_.get(); }

 private:
  static constexpr std::align_val_t kPage{4096};
  struct Free {
    void operator()(T* data) const { ::operator delete(data, kPage); }
  };
  std::unique_ptr<T, Free> data_;
};

/// Elements between consecutive rows, and between consecutive columns; one of them is 1.
struct MatrixStrides {
  int64_t row = 0, col = 1;
};

/// The address of a matrix's first element, and of the scales of all elements, where it has some
/// (MatmulShape).
struct MatmulOperand {
  MatmulOperand(const void* elements, const float* scales = nullptr)  // NOLINT: any matrix is one
      : elements(elements), scales(scales) {}
  const void* elements;
  const float* scales;
};

struct MatmulShape {
  DType dtype{};                // f32, f16 or bf16
  int64_t m = 0, n = 0, k = 0;  // all positive
  MatrixStrides a, b, c;
  bool accumulate = false;  // c += instead of c =
  /// The 8-bit floats that a and b are of, with `dtype` f32; nullopt: both are of `dtype`.
  std::optional<DType> float8_a = std::nullopt, float8_b = std::nullopt;
  /// Which of the scales of its operand, from their address on, an 8-bit float has.
  std::optional<ScaleView> scales_a = std::nullopt, scales_b = std::nullopt;
};

/// One matrix product of a fixed shape, c[m, n] = a[m, k] . b[k, n], on the calling thread. Summed
/// in f32 and rounded once. Not thread-safe.
class Matmul {
 public:
  virtual ~Matmul() = default;
  /// Does not allocate, apart from the library itself. Returns false when the library fails, which
  /// happens when the machine is out of memory.
  virtual bool Run(MatmulOperand a, MatmulOperand b, void* c) = 0;
};

/// A copy of matrix b in the order that the library prefers, for several products. Not thread-safe.
class MatmulWeights {
 public:
  virtual ~MatmulWeights() = default;
  /// Rearranges b. Allocation and result as of Matmul::Run.
  virtual bool Pack(const void* b) = 0;
};

/// Weights for products of this shape and others with the same b. Unimplemented if the library
/// prefers b as stored; Unavailable, as for all functions below, without oneDNN.
absl::StatusOr<std::shared_ptr<MatmulWeights>> MakeMatmulWeights(const MatmulShape& shape);

/// A product by oneDNN; Unimplemented if it has only its reference for the CPU and the type. If
/// `weights` (of MakeMatmulWeights) is given, it replaces Run's b and must outlive the result;
/// Unimplemented also if oneDNN cannot use it.
absl::StatusOr<std::unique_ptr<Matmul>> MakeMatmul(const MatmulShape& shape,
                                                   const MatmulWeights* weights = nullptr);

/// The same by oneDNN's sgemm, which packs parts of b as it goes. Unimplemented for f16 and bf16.
absl::StatusOr<std::unique_ptr<Matmul>> MakeSgemm(const MatmulShape& shape);

/// A product of f16, bf16 or 8-bit floats that is computed in f32, block by block, for CPUs on
/// which oneDNN lacks the type. The only way of 8-bit floats.
absl::StatusOr<std::unique_ptr<Matmul>> MakeWidenedMatmul(const MatmulShape& shape);

}  // namespace coconet
