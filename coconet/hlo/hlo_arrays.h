#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "coconet/hlo/text/hlo_module.h"
#include "coconet/language/language.h"

namespace coconet {

/// An array of an HLO program as a tensor of a Program, or a tuple of such. A tensor may have its
/// dimensions in another order, extents of 1 between them, and lack those along which all elements
/// are equal: so broadcasts, and reductions that are broadcast back, need no operation.
struct HloValue {
  HloShape shape;
  std::vector<HloValue> elements;  // of a tuple

  // The fields of an array.
  Tensor tensor = 0;
  /// By dimension of the array: the tensor's dimension, or -1 if all elements along it are equal.
  /// Other dimensions of the tensor have the extent 1.
  std::vector<int> at;
  std::optional<Number> number;  // all elements are this constant; there is no tensor then

  bool is_skipped = false;  // of an unsupported operation
  /// The elided constant (IsElided) that the value depends on, for planning.
  const HloInstruction* elided = nullptr;

  int rank() const { return static_cast<int>(shape.dims.size()); }
};

/// The tensor type for an HLO type; none if the language has none.
std::optional<DType> DTypeOf(HloType type);

/// The integer type of 8, 16, 32 or 64 bits.
HloType IntegerOfBits(int bits, bool is_signed);

/// A number of equal elements, as a factor that makes one of them their sum: in a narrow integer it
/// wraps around, as the sum does.
Number CountAs(DType dtype, int64_t count);

/// Operations that make arrays from arrays, in a program. Mistakes go to the program's status.
class HloArrays {
 public:
  HloArrays(Program& program, int64_t ranks) : program_(program), ranks_(ranks) {}

  Program& program() { return program_; }
  /// The ranks for which the module was written; 0: any number.
  int64_t ranks() const { return ranks_; }

  /// In an integer type, the number is a saturated integer.
  static HloValue Constant(const Number& number, HloShape shape);
  static HloValue Tuple(std::vector<HloValue> elements);
  /// An array whose tensor has its dimensions.
  static HloValue Of(Tensor tensor, HloShape shape);

  /// fn of arrays of one shape, but that scalars, for clamps, may stand for any.
  HloValue Apply(Pw fn, absl::Span<const HloValue> operands);
  HloValue Apply(Pw fn, const HloValue& a, const Number& number);
  /// a where `holds`, a pred of their shape or a scalar, else b.
  HloValue Select(const HloValue& holds, const HloValue& a, const HloValue& b);
  /// Indices as the nearest in [0, most].
  HloValue Clamped(const HloValue& indices, int64_t most);
  /// As the language casts: integers saturate.
  HloValue Cast(const HloValue& a, HloType type);
  /// As HLO converts: of integers the low bits are kept, and signs are extended.
  HloValue Convert(const HloValue& a, HloType type);
  HloValue BitCast(const HloValue& a, HloType type);

  /// The tensor with exactly the array's dimensions and extents.
  Tensor Whole(const HloValue& a);
  /// The tensor with the array's dimensions, of which those along which all elements are equal have
  /// the extent 1.
  Tensor Aligned(const HloValue& a);
  /// Dimension d of the result is order[d] of the array.
  static HloValue Transposed(const HloValue& a, absl::Span<const int64_t> order, HloShape shape);
  /// HLO's broadcast: dimension d of the array is dims[d] of the result.
  static HloValue Broadcast(const HloValue& a, absl::Span<const int64_t> dims, HloShape shape);
  HloValue Reshaped(const HloValue& a, HloShape shape);
  /// [begin, end) along a dimension. If the array was joined along it, the ranges of its parts are
  /// joined instead: so loops that fill an array row by row, and take its rows, copy none.
  HloValue Ranged(const HloValue& a, int dim, int64_t begin, int64_t end);
  HloValue Joined(absl::Span<const HloValue> parts, int dim, HloShape shape);
  HloValue Reversed(const HloValue& a, absl::Span<const int64_t> dims);
  /// Each element's index along a dimension, which wraps around in narrow integers.
  HloValue Iota(int dim, HloShape shape);
  /// Elements that an array of the shape has in row-major order.
  HloValue Literal(absl::Span<const Number> elements, HloShape shape);
  /// The reduction of an array over dimensions, which `shape` lacks.
  HloValue Folded(FoldKind kind, const HloValue& a, absl::Span<const int64_t> dims, HloShape shape);

 private:
  /// The tensor with dimension d of the array at at[d] of `rank` dimensions, extents of 1 where all
  /// elements are equal.
  Tensor At(const HloValue& a, absl::Span<const int> at, int rank);
  Tensor Typed(const HloValue& a);
  /// The parts of an array that was joined along the dimension; null if it was not.
  const std::vector<HloValue>* PartsAlong(const HloValue& a, int dim) const;

  struct Join {
    int dim = 0;
    std::vector<HloValue> parts;
  };
  Program& program_;
  const int64_t ranks_;
  absl::flat_hash_map<int, Join> joins_;  // by tensor
};

}  // namespace coconet
