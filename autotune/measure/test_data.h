#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "autotune/measure/tensors.h"
#include "coconet/ir/graph.h"
#include "coconet/ir/types.h"

namespace coconet {

/// Data on which variants are verified: a pure function of (seed, tensor, rank, global index), so
/// that it does not depend on layouts. Magnitudes are in [0.5, 2), where sums, products, quotients
/// and roots are well conditioned. Local inputs have random signs; all else is positive, as second
/// moments, operands of roots, and learning rates must be. Scalars of f64 or integers stand for
/// step counts: small and at least 1. Indices of gathers, where these are an input or a state or
/// what a view, a part or a collective makes of one, are rows of the table, one in 16 out of range.
/// Every value is representable in the tensor's dtype.
class TestData {
 public:
  /// Data of the inputs and states of `program`, which is bound. Each pipeline stage, of
  /// `stage_size` ranks, has values of its own.
  TestData(const Graph& program, uint64_t seed, int stage_size);

  /// Element `index` of a global tensor; of a Local one, of its values on `rank`. `tensor` names an
  /// input or state.
  double At(const std::string& tensor, int rank, int64_t index) const;

  /// Writes the elements of `tensor` that `rank` holds (part = PartOf(...)) to its storage; leaves
  /// padding alone.
  void Fill(const std::string& tensor, int rank, const Part& part, void* storage) const;
  /// Position of the first element held that differs in a bit from what Fill wrote; -1: none.
  int64_t FirstChange(const std::string& tensor, int rank, const Part& part,
                      const void* storage) const;

 private:
  struct Stream {
    DType dtype{};
    bool scalar = false, is_signed = false, local = false;
    uint64_t seed = 0;
    bool are_indices = false;
    int64_t rows = 0;  // of the smallest table that they are indices of
  };
  const Stream& StreamOf(const std::string& tensor) const;
  /// Elements [begin, begin + count) of the global tensor.
  void Generate(const Stream& stream, int rank, int64_t begin, int64_t count, void* out) const;

  const int stage_size_;
  absl::flat_hash_map<std::string, Stream> streams_;
  std::vector<uint32_t>
      table_;  // random words; each block of elements xors them with a word of its own
};

}  // namespace coconet
