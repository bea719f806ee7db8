#ifndef COCONET_RUNTIME_HOST_MATMUL_H_
#define COCONET_RUNTIME_HOST_MATMUL_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "coconet/base/dtype.h"

namespace coconet {

/// Elements from one row of a matrix to the next, and from one column to the next; one of them
/// is 1.
struct MatrixStrides {
  int64_t row = 0, col = 1;
};

struct MatmulShape {
  DType dtype{};                // f32, f16 or bf16
  int64_t m = 0, n = 0, k = 0;  // none is 0
  MatrixStrides a, b, c;
  bool accumulate = false;  // adds to c
};

/// One matrix product of a fixed shape, c[m, n] = a[m, k] . b[k, n], on the calling thread alone.
/// Summed in f32, rounded once. Used by one thread at a time.
class Matmul {
 public:
  virtual ~Matmul() = default;
  /// Allocates nothing of ours. False when the library failed, which happens when the machine is
  /// out of memory.
  virtual bool Run(const void* a, const void* b, void* c) = 0;
};

/// A matrix b as the library likes it best, for several products. Used by one thread at a time.
class MatmulWeights {
 public:
  virtual ~MatmulWeights() = default;
  /// Rearranges b. Allocates nothing of ours. False when the library failed.
  virtual bool Pack(const void* b) = 0;
};

/// Rearranged for products of this shape, and of others with the same b. Unimplemented where b is
/// best as it lies.
absl::StatusOr<std::shared_ptr<MatmulWeights>> MakeMatmulWeights(const MatmulShape& shape);

/// By oneDNN as it is: Unimplemented where it has nothing fast for the CPU and the type. With
/// `weights`, of MakeMatmulWeights, that outlive it, it takes these in place of the b of Run, and
/// is also Unimplemented where oneDNN cannot.
absl::StatusOr<std::unique_ptr<Matmul>> MakeMatmul(const MatmulShape& shape,
                                                   const MatmulWeights* weights = nullptr);

/// f16 or bf16 by way of f32, block by block, for CPUs on which oneDNN lacks the type.
absl::StatusOr<std::unique_ptr<Matmul>> MakeWidenedMatmul(const MatmulShape& shape);

}  // namespace coconet

#endif  // COCONET_RUNTIME_HOST_MATMUL_H_
