#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coconet/base/dtype.h"
#include "coconet/ir/typed_graph.h"
#include "jit/config/target.h"
#include "runtime/plan.h"

namespace coconet {

/// Kinds of a kernel's work that take different times. They are counted in lanes of 32 bits of
/// packs of kCountedPack elements: an element of 64 bits counts twice, an element that is computed
/// alone, at the end of a row, counts as a whole pack.
enum class Effort : uint8_t {
  kPass,       // elements that a loop goes over, each time that one does
  kLoad,       // loads from where the element lies in a tensor of the kernel's own shape
  kSpread,     // loads of neighbours whose place is computed: broadcast, a slice, a row by index
  kScattered,  // loads of single elements whose places are computed: transposed, short rows
  kStore,
  kSimple,    // additions, multiplications, comparisons, selections
  kExtremum,  // min, max, relu: three operations each, for NaN
  kDivision,
  kRoot,  // square roots
  kExp,
  kTanh,
  kErf,
  kLibrary,      // functions of the C library, a lane at a time: log, pow, all of f64
  kF16,          // conversions of f16 to f32 and back, of what is loaded and stored, too
  kWiden,        // of bf16 and 8-bit floats to f32
  kNarrow,       // of f32 to bf16 and to 8-bit floats
  kByteLoad,     // conversions of elements of a byte that are loaded
  kByteStore,    // conversions of elements of a byte that are stored
  kQuotient,     // of loads whose places are computed: divisions by the extents of dimensions
  kJump,         // runs of neighbours that begin elsewhere than the one before ends
  kConversion,   // other conversions, a lane at a time if they saturate
  kIndices,      // Iota
  kRandom,       // random words
  kSum,          // folded to a sum, in double precision
  kGreatest,     // folded to an extremum
  kTotal,        // lanes of accumulators that are folded to one number, for a row or all elements
  kAlone,        // instructions for elements that are computed alone, at the end of a row
  kRow,          // operations and loads on one number a row
  kChain,        // cycles of dependent operations, as far as those of several packs do not overlap:
                 // the processor holds only so many operations at a time
  kDrain,        // cycles of dependent operations, of rows: one loop waits for the one before it
  kStridedFold,  // elements that a fold over other dimensions than the last takes
  kScatter,      // additions to rows by index
  kMultiply,     // multiply-adds of products of few rows in kernels
};
inline constexpr size_t kEfforts = static_cast<size_t>(Effort::kMultiply) + 1;
/// "pass", "load", ...: in calibrations.
absl::string_view Name(Effort effort);

/// The pack size that efforts are counted for: the plainest Config's.
inline constexpr int64_t kCountedPack = 16;

/// The work of one launch of a schedule on one rank, as far as its time depends on it.
struct Work {
  enum class Kind : uint8_t {
    kKernel,      // a generated kernel of operations that are no collectives
    kProduct,     // a matrix product by a library
    kCollective,  // collectives by a library, as one call
    kOpaque,      // an operation of which only the costs are known
  };
  Kind kind = Kind::kKernel;
  DType dtype = DType::kF32;

  // Kernels; products have the bytes, too. Bytes count each tensor that is read or written in
  // memory once.
  double bytes_read = 0, bytes_written = 0;
  double bytes_again = 0;      // that a later pass over all elements reads once more
  double arithmetic = 0;       // additions, multiplications, comparisons, ..., by element
  double transcendentals = 0;  // exp, log, tanh, erf, pow, ..., by element
  double folded = 0;           // elements that folds over other dimensions than the last take
  std::array<double, kEfforts> efforts{};
  double& operator[](Effort effort) { return efforts[static_cast<size_t>(effort)]; }
  double operator[](Effort effort) const { return efforts[static_cast<size_t>(effort)]; }

  // Products: op(a)[batch, m, k] . op(b)[batch, k, n].
  int64_t batch = 0, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;

  // Collectives.
  CollectiveStep::Kind collective{};
  Group group = Group::kStage;
  double bytes = 0;  // of the whole operands
  int tensors = 0;   // operands, each in memory of its own

  // Opaque operations, besides bytes_read and bytes_written.
  double flops = 0;
  double link_bytes = 0;  // that a rank sends

  bool operator==(const Work&) const = default;
};

/// The work of nodes of a bound program as one launch, ascending: collectives alone, one product
/// with the store of its result, or a kernel without collectives. Values that nodes outside take,
/// and stored ones, are written to memory. If ranks have different parts, it is the work of the
/// rank with most. Time: n log n in the number of nodes and operands, times the folds of rows that
/// a value goes through.
Work WorkOf(const TypedGraph& program, absl::Span<const NodeId> nodes, const Target& target);

}  // namespace coconet
