#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "coconet/base/dtype.h"
#include "coconet/ir/collectives.h"
#include "coconet/ir/op_row.h"
#include "coconet/ir/pointwise.h"
#include "coconet/ir/types.h"
#include "coconet/ir/views.h"

namespace coconet {

// The table of operations: each is a struct and a row, those between ranks in collectives.h, those
// that take elements of other places in views.h, the others here.
// A struct's comment begins with its operands. infer.h infers types; op_table.h has the functions
// over all operations. A new operation needs an arm in each visit, which the compiler reports.

/// (): what a run is given. With `each` there is one per tensor of a list, though the shape
/// mentions no symbol that is bound to a list (lists.h).
struct Input {
  std::string name;
  TensorType type;
  bool each = false;
  bool operator==(const Input&) const = default;
};
template <>
inline constexpr OpRow kRow<Input> = {
    .spelling = {"input", 0}, .role = Role::kDeclaration, .declared = DeclaredBy<Input>};

/// (): the value before the step of what stays from step to step; `each` as in Input.
struct State {
  std::string name;
  TensorType type;
  bool each = false;
  bool operator==(const State&) const = default;
};
template <>
inline constexpr OpRow kRow<State> = {
    .spelling = {"state", 0}, .role = Role::kDeclaration, .declared = DeclaredBy<State>};

/// (state, value): assigns in place, yields the value.
struct Update {
  bool operator==(const Update&) const = default;
};
template <>
inline constexpr OpRow kRow<Update> = {.spelling = {"update", 2}, .role = Role::kStore};

/// (a): gives a name to the outside, yields nothing.
struct Output {
  std::string name;
  bool operator==(const Output&) const = default;
};
template <>
inline constexpr OpRow kRow<Output> = {
    .spelling = {"output", 1}, .role = Role::kStore, .declared = NamedBy<Output>};

/// (): a scalar.
struct Const {
  Number value;
  DType dtype{};
  bool operator==(const Const&) const = default;
};
template <>
inline constexpr OpRow kRow<Const> = {
    .spelling = {"const", 0},
    .role = Role::kConstant,
    .before = {Of<&Const::value>(Written::kValue, "a number or inf"),
               Of<&Const::dtype>(Written::kDType)}};

/// (): the number of ranks, a scalar.
struct WorldSize {
  DType dtype{};
  bool operator==(const WorldSize&) const = default;
};
template <>
inline constexpr OpRow kRow<WorldSize> = {.spelling = {"world", 0},
                                          .role = Role::kConstant,
                                          .before = {Of<&WorldSize::dtype>(Written::kDType)}};

/// (): the number of elements of a tensor of a shape, whose symbols are bound with those of
/// declarations; a scalar.
struct Count {
  DType dtype{};
  Shape shape;
  bool operator==(const Count&) const = default;
};
template <>
inline constexpr OpRow kRow<Count> = {
    .spelling = {"count", 0},
    .role = Role::kConstant,
    .before = {Of<&Count::dtype>(Written::kDType), Of<&Count::shape>(Written::kShape)}};

/// (a, ...): an elementwise function (pointwise.inc), with NumPy broadcasting.
struct Pointwise {
  Pw fn{};
  bool operator==(const Pointwise&) const = default;
};
template <>
inline constexpr OpRow kRow<Pointwise> = {
    .role = Role::kElementwise, .family = FamilyOf<&Pointwise::fn>(kPointwiseCount, [](size_t fn) {
                                  const PwInfo& info = Info(static_cast<Pw>(fn));
                                  return Spelling{info.name, info.arity};
                                })};

/// (a)
struct Cast {
  DType dtype{};
  bool operator==(const Cast&) const = default;
};
template <>
inline constexpr OpRow kRow<Cast> = {.spelling = {"cast", 1},
                                     .role = Role::kElementwise,
                                     .before = {Of<&Cast::dtype>(Written::kDType)}};

/// (a): the number that the bits of a's are in a type of as many bits, neither of them bool.
struct BitCast {
  DType dtype{};
  bool operator==(const BitCast&) const = default;
};
template <>
inline constexpr OpRow kRow<BitCast> = {.spelling = {"bit_cast", 1},
                                        .role = Role::kElementwise,
                                        .before = {Of<&BitCast::dtype>(Written::kDType)}};

/// (a): each element's index along a dimension of the global tensor, in i32 or i64.
struct Iota {
  DType dtype = DType::kI32;
  int dim = 0;
  bool operator==(const Iota&) const = default;
};
template <>
inline constexpr OpRow kRow<Iota> = {.spelling = {"iota", 1},
                                     .role = Role::kElementwise,
                                     .before = {Of<&Iota::dtype>(Written::kDType)},
                                     .after = {Of<&Iota::dim>(Written::kDim)}};

/// Reduction over dimensions of each rank's own elements: sum, arithmetic mean, greatest, least.
enum class FoldKind : uint8_t { kSum, kMean, kMax, kMin };
/// "sum", "mean", "amax", "amin": as in NumPy.
absl::string_view Name(FoldKind kind);

/// (a): the dimensions, ascending, become 1; all of them (none named): a scalar. If the tensor is
/// sliced over one of them, the result is Local, what the rank's part contributes: its sum, its sum
/// divided by the count of all ranks' elements, its extremum.
struct Fold {
  FoldKind kind{};
  std::vector<int> dims;
  bool operator==(const Fold&) const = default;
};
template <>
inline constexpr OpRow kRow<Fold> = {.role = Role::kFold,
                                     .after = {Of<&Fold::dims>(Written::kDims)},
                                     .family = FamilyOf<&Fold::kind>(4, [](size_t kind) {
                                       return Spelling{Name(static_cast<FoldKind>(kind)), 1};
                                     })};

/// (a), a scalar of each tensor of a list: their sum, greatest or least; the scalar itself if there
/// is one tensor.
struct Total {
  ReduceKind kind{};
  bool operator==(const Total&) const = default;
};
template <>
inline constexpr OpRow kRow<Total> = {
    .spelling = {"total", 1},
    .role = Role::kTotal,
    .before = {Of<&Total::kind>(Written::kReduceKind, "", /*may_be_left_out=*/true)}};

/// (a, seed): 0 with probability `rate`, else a / (1 - rate). Element i of the global tensor, row
/// major, is kept when word i % 4 of Philox4x32-10 (Salmon et al., SC'11) is at least rate * 2^32,
/// with the counter (i / 4, stream) and the key `seed`, an i64 scalar.
struct Dropout {
  double rate = 0;
  int64_t stream = 0;
  bool operator==(const Dropout&) const = default;
};
template <>
inline constexpr OpRow kRow<Dropout> = {
    .spelling = {"dropout", 2},
    .role = Role::kElementwise,
    .after = {Of<&Dropout::rate>(Written::kNumber, "the rate, a number"),
              Of<&Dropout::stream>(Written::kStream)}};

/// (a, seed), a in f32: one of the two bf16 numbers around a, so that the mean over seeds is a.
/// Rounded up, away from 0, when the 16 bits of a that bf16 lacks, plus the upper 16 of the
/// element's word, carry; the word is Dropout's. Infinities and NaN stay.
struct StochasticRound {
  int64_t stream = 0;
  bool operator==(const StochasticRound&) const = default;
};
template <>
inline constexpr OpRow kRow<StochasticRound> = {
    .spelling = {"round_stochastic", 2},
    .role = Role::kElementwise,
    .after = {Of<&StochasticRound::stream>(Written::kStream)}};

/// (a[..., m, k], b[..., k, n]): [..., m, n]; a transposed operand has its last two dimensions
/// swapped. Leading dimensions broadcast as in NumPy.
/// (a, b, scale_a, scale_b), a and b of 8-bit floats: the product of a * scale_a and b * scale_b in
/// f32. A scale is f32 with as many dimensions as its operand has before transposing. Each of its
/// extents divides the operand's, and the quotient is the extent of the blocks there of which all
/// elements have one scale (operand_index.h): of x[M, K] with scales [M, K / 128] those of 128
/// neighbours in a row. An extent of 0 has scales of extent 0 or 1.
struct MatMul {
  bool transpose_a = false, transpose_b = false;
  bool operator==(const MatMul&) const = default;
};
template <>
inline constexpr OpRow kRow<MatMul> = {
    .spelling = {"matmul", 2, 4},
    .role = Role::kProduct,
    .after = {Of<&MatMul::transpose_a>(Written::kFlag, "transpose_a"),
              Of<&MatMul::transpose_b>(Written::kFlag, "transpose_b")}};

/// (...): an operation that is planned and simulated, but not run, since only its costs are known:
/// on each rank it computes `flops` and sends `link_bytes`; if it sends any, it is a collective.
/// Local if an operand is.
struct Opaque {
  std::string what;  // a name: "sort"
  DType dtype{};
  Shape shape;
  double flops = 0, link_bytes = 0;
  bool operator==(const Opaque&) const = default;
};
template <>
inline constexpr OpRow kRow<Opaque> = {
    .spelling = {"opaque", 0, kMostJoined},
    .role = Role::kOpaque,
    .before = {Of<&Opaque::what>(Written::kName, "the name of what it does"),
               Of<&Opaque::dtype>(Written::kDType), Of<&Opaque::shape>(Written::kShape),
               Of<&Opaque::flops>(Written::kNumber, "floating-point operations, a number"),
               Of<&Opaque::link_bytes>(Written::kNumber, "bytes that a rank sends, a number")}};

using Op =
    std::variant<Input, State, Const, WorldSize, Count, RankNumber, Pointwise, Cast, BitCast, Iota,
                 AllReduce, ReduceScatter, AllGather, Fold, Total, Dropout, StochasticRound, MatMul,
                 Transpose, Reshape, Expand, Reverse, SubTensor, Concat, Gather, EmbeddingBag,
                 ScatterAdd, Shard, Broadcast, ReduceTo, AllToAll, Send, Opaque, Update, Output>;

}  // namespace coconet
