#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autotune/measure/tensors.h"
#include "coconet/base/numerics.h"
#include "coconet/ir/graph.h"
#include "coconet/ir/types.h"

namespace coconet {

/// The kinds of TestData. Every kind has the signs, step counts and indices that TestData names.
enum class DataKind : uint8_t {
  /// Magnitudes in [0.5, 2), where sums, products, quotients and roots are well conditioned.
  kOrdinary,
  /// Floats as kOrdinary, divided by 256: long sums of narrow types do not overflow.
  kSmall,
  /// Floats whose magnitude differs from tensor to tensor, between 2^-17 and 2^17 (f16: 2^-9 and
  /// 2^5), spread over a factor of 2^8; integers up to 2^14; one element in 32 is 0.
  kWide,
  /// Ordinary, but one element in 16 of each tensor is NaN, infinite, zero, or the greatest or
  /// least number of its type.
  kSpecial,
  /// Ordinary, but one element of one tensor, on one rank if it is Local, is infinite.
  kLoneInfinity,
  /// The same with a NaN.
  kLoneNaN,
  /// Ordinary, but some floating-point tensors, which the seed picks, are 0, as at the first step.
  kZeros,
  /// The same, but the other tensors are 0.
  kOtherZeros,
  /// Floats that are small integers and powers of two, whose sums and products are exact: so
  /// choices that follow from them, such as that of the greatest, are certain, and ties are
  /// frequent.
  kExact,
  /// Ordinary, but all indices are rows of the table, all rows that are counted are in use, and
  /// bags have equally many indices: the data of timed steps.
  kInUse,
};
/// "ordinary"
absl::string_view Name(DataKind kind);

/// Data on which variants are verified: a pure function of (seed, tensor, rank, global index), so
/// that it does not depend on layouts. Local inputs, and operands of matrix products, have random
/// signs, so that a long sum shows a missing term. The last of two operands is divided by about the
/// root of the number of terms, as weights are, so that exponentials of products of products
/// neither vanish nor overflow. All else is positive, as second moments, operands of roots, and
/// learning rates must be. Scalars of f64 or integers stand for step counts: small and at least 1.
/// Indices of gathers that are an input or a state, or a view, part or collective of one, are rows
/// of the table, one in 16 out of range; offsets of bags ascend over the indices, except one in 16.
/// Every value is representable in the tensor's dtype.
class TestData {
 public:
  /// Data of the inputs and states of `program`, which is bound. Each pipeline stage, of
  /// `stage_size` ranks, has values of its own. Nans::kNone: no value is NaN.
  TestData(const Graph& program, uint64_t seed, int stage_size, DataKind kind = DataKind::kOrdinary,
           Nans nans = Nans::kPossible);

  DataKind kind() const { return kind_; }

  /// Whether elements of a tensor are rows that a step takes by index.
  bool AreRowIndices(const std::string& tensor) const;
  /// Whether they are row indices, offsets of bags, or numbers of rows: a step's work depends on
  /// them.
  bool SayWhichRows(const std::string& tensor) const;

  /// Element `index` of a global tensor; of a Local one, of its values on `rank`. `tensor` names an
  /// input or state.
  Number At(const std::string& tensor, int rank, int64_t index) const;
  /// Elements `indices`, in that order.
  void Read(const std::string& tensor, int rank, absl::Span<const int64_t> indices,
            Number* out) const;

  /// Writes the elements of `tensor` that `rank` holds (part = PartOf(...)) to its storage; leaves
  /// padding alone.
  void Fill(const std::string& tensor, int rank, const Part& part, void* storage) const;
  /// The position of the first element held that differs in a bit from what Fill wrote; -1: none.
  int64_t FirstChange(const std::string& tensor, int rank, const Part& part,
                      const void* storage) const;

 private:
  struct Stream {
    DType dtype{};
    bool scalar = false, is_signed = false, local = false;
    uint64_t seed = 0;
    uint32_t halvings = 0;                         // of ordinary elements
    bool are_indices = false, are_counts = false;  // counts of rows: both
    int64_t rows = 0;                              // of the smallest table that they are indices of
    int64_t bags = 0;   // 0: they are not offsets; else of so many bags, in `rows` indices
    int64_t lone = -1;  // the index of the kind's element, of `lone_rank` of each stage
    int lone_rank = 0;
    bool is_zero = false;
    bool SaysWhichRows() const { return are_indices || bags > 0; }
  };
  const Stream& StreamOf(const std::string& tensor) const;
  /// Elements [begin, begin + count) of the global tensor.
  void Generate(const Stream& stream, int rank, int64_t begin, int64_t count, void* out) const;
  /// Element `at` of kInUse if the stream has indices, offsets or counts.
  static int64_t InUse(const Stream& stream, uint32_t random, int64_t at);
  /// Turns ordinary elements, from `begin` on, into those of the kind. `seed`: of the rank's
  /// values.
  void Vary(const Stream& stream, int rank, uint64_t seed, int64_t begin, int64_t count,
            void* elements) const;
  /// Finds operands of products.
  void FindFactors(const TypedGraph& program, NodeId id);
  /// Finds operations that take rows by index, and marks their indices.
  void FindIndices(const TypedGraph& program, NodeId id);
  /// The same for operands that are compared with the index along a dimension: mostly numbers from
  /// 0 to its extent, as numbers of rows in use are.
  void FindCounts(const TypedGraph& program, NodeId id);
  /// Picks the tensor and the place of the one element of kLoneInfinity and kLoneNaN.
  void PickLone(const Graph& program, uint64_t seed);

  const int stage_size_;
  const DataKind kind_;
  const Nans nans_;
  absl::flat_hash_map<std::string, Stream> streams_;
  std::vector<uint32_t> table_;  // random words, of which each block of elements makes its own
};

}  // namespace coconet
