#ifndef COCONET_AUTOTUNE_MEASURE_TEST_DATA_H_
#define COCONET_AUTOTUNE_MEASURE_TEST_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "autotune/measure/tensors.h"
#include "coconet/ir/graph.h"
#include "coconet/ir/types.h"

namespace coconet {

/// Data to check variants on: a pure function of (seed, tensor, rank, global index), so that every
/// rank, layout and window sees the same program. Magnitudes are in [0.5, 2), where sums, products,
/// quotients and roots are well conditioned; Local inputs have random signs, everything else is
/// positive, as second moments, weights of a root, and learning rates must be. Scalars of f64 or
/// integers count steps: small and at least 1. Every value is one of the tensor's dtype.
class TestData {
 public:
  /// For the inputs and states of `program`, which is bound. Each stage of so many ranks has values
  /// of its own.
  TestData(const Graph& program, uint64_t seed, int stage_size);

  /// Element `index` of the global tensor, on `rank` for a Local one (any rank of the stage for
  /// others). The tensor must be one.
  double At(const std::string& tensor, int rank, int64_t index) const;

  /// Writes what `rank` holds of `tensor` (part = PartOf(...)) to its storage. Padding is left
  /// alone.
  void Fill(const std::string& tensor, int rank, const Part& part, void* storage) const;
  /// Position of the first element held that is not as Fill wrote it, to the bit; -1 when all are.
  int64_t FirstChange(const std::string& tensor, int rank, const Part& part,
                      const void* storage) const;

 private:
  struct Stream {
    DType dtype{};
    bool scalar = false, is_signed = false, local = false;
    uint64_t seed = 0;
  };
  const Stream& StreamOf(const std::string& tensor) const;
  /// Elements [begin, begin + count) of the global tensor.
  void Generate(const Stream& stream, int rank, int64_t begin, int64_t count, void* out) const;

  const int stage_size_;
  absl::flat_hash_map<std::string, Stream> streams_;
  std::vector<uint32_t>
      table_;  // random words; element i of a block of them is xored with the block's own word
};

}  // namespace coconet

#endif  // COCONET_AUTOTUNE_MEASURE_TEST_DATA_H_
