#ifndef COCONET_IR_OP_H_
#define COCONET_IR_OP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "coconet/base/dtype.h"
#include "coconet/ir/types.h"

namespace coconet {

/// Elementwise functions: one row of `kPointwise` each (pointwise.cc). Adding one touches the row,
/// this list, and its test.
enum class Pw : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kNeg,
  kAbs,
  kMin,
  kMax,
  kPow,
  kSqrt,
  kRsqrt,
  kExp,
  kLog,
  kTanh,
  kSigmoid,
  kRelu,
  kGelu,
  kSilu,
  kLt,
  kLe,
  kGt,
  kGe,
  kEq,
  kNe,
  kSelect,
};

/// What an elementwise function's result type is.
enum class PwResult : uint8_t { kSame, kBool };

struct PwInfo {
  absl::string_view name;  // in the text form, e.g. "add"
  int arity;
  bool float_only;  // refuses integer operands (sqrt, exp, ...)
  PwResult result;  // kSame: dtype of the (last) operands; kBool: comparison
  /// Expression over $0, $1, $2 of type Pack<T, V>, in the kernel dialect (functions of the
  /// prelude).
  absl::string_view kernel_expr;
  /// Reference semantics over the reals; for integers see EvalPointwise.
  double (*eval)(const double* args);
  /// Roundings of the compute type that the kernel's expression may commit, in units of
  /// UnitRoundoff: 1 for correctly rounded operations, 0 for exact ones, more for library
  /// functions.
  double ulps;
  /// What these roundings are relative to; null: the result.
  double (*magnitude)(const double* args) = nullptr;
};

const PwInfo& Info(Pw fn);
std::optional<Pw> FindPointwise(absl::string_view name);
absl::Span<const PwInfo> AllPointwise();

/// Info(fn).eval with the arithmetic of `operands` where that is an integer type: quotients are
/// truncated towards zero, x / 0 is 0, overflow wraps. Exact while results stay within 2^53.
double EvalPointwise(Pw fn, DType operands, const double* args);

// ---- Operations -------------------------------------------------------------------------------
// Inputs of each are in the comment; types are inferred (infer.h).

// `each`: there is one a tensor of a list, though the shape mentions no symbol that is bound to a
// list (lists.h).

struct Input {
  std::string name;
  TensorType type;
  bool each = false;
  bool operator==(const Input&) const = default;
};  // ()
struct State {
  std::string name;
  TensorType type;
  bool each = false;
  bool operator==(const State&) const = default;
};  // () yields the value before the step
struct Const {
  double value = 0;
  DType dtype{};
  bool operator==(const Const&) const = default;
};  // () scalar
struct WorldSize {
  DType dtype{};
  bool operator==(const WorldSize&) const = default;
};  // () scalar: number of ranks
struct Pointwise {
  Pw fn{};
  bool operator==(const Pointwise&) const = default;
};  // (a, ...) NumPy broadcasting
struct Cast {
  DType dtype{};
  bool operator==(const Cast&) const = default;
};  // (a)

/// Reduction over dimensions of each rank's own elements: sum, arithmetic mean, greatest, least.
enum class FoldKind : uint8_t { kSum, kMean, kMax, kMin };
/// (a): the dimensions, ascending, become 1; all of them (none named): a scalar. Of a tensor sliced
/// over one of them the result is Local, what the rank's part contributes: its sum, its sum over
/// the whole count, its extremum.
struct Fold {
  FoldKind kind{};
  std::vector<int> dims;
  bool operator==(const Fold&) const = default;
};
/// (a), a scalar of which there is one a tensor of a list: their sum, greatest or least; of a
/// single tensor the scalar itself.
struct Total {
  ReduceKind kind{};
  bool operator==(const Total&) const = default;
};
/// (a, seed): 0 with probability `rate`, else a / (1 - rate). Element i of the global tensor, row
/// major, is kept when word i % 4 of Philox4x32-10 (Salmon et al., SC'11) is at least rate * 2^32,
/// with the counter (i / 4, stream) and the key `seed`, an i64 scalar.
struct Dropout {
  double rate = 0;
  int64_t stream = 0;
  bool operator==(const Dropout&) const = default;
};
/// (a, seed), a in f32: one of the two bf16 numbers around a, so that the mean over seeds is a.
/// Rounded up, away from 0, when the 16 bits of a that bf16 lacks, plus the upper 16 of the
/// element's word, carry; the word is Dropout's. Infinities and NaN stay.
struct StochasticRound {
  int64_t stream = 0;
  bool operator==(const StochasticRound&) const = default;
};
/// (a[..., m, k], b[..., k, n]): [..., m, n]; a transposed operand has its last two dimensions
/// swapped. Leading dimensions are equal, or one operand has none.
struct MatMul {
  bool transpose_a = false, transpose_b = false;
  bool operator==(const MatMul&) const = default;
};
struct Transpose {
  std::vector<int> order;
  bool operator==(const Transpose&) const = default;
};  // (a): dimension d is a's order[d]
struct Reshape {
  Shape shape;
  bool operator==(const Reshape&) const = default;
};  // (a): the same elements, row major
struct SubTensor {
  int dim = 0;
  int64_t begin = 0, end = 0;
  bool operator==(const SubTensor&) const = default;
};  // (a): [begin, end) of a dimension

/// Which ranks a collective spans: all of a stage; those of each node; or those with one place in
/// each node, one a node. What reduces or gathers in two steps gives what one step over all ranks
/// does (Layout::Parts): reduce_scatter(node), reduce_scatter(across); all_gather(across),
/// all_gather(node). Across nodes all_reduce takes what reduce_scatter(node) gives, and gives what
/// all_gather(node) takes.
enum class Span : uint8_t { kAll, kNode, kAcross };
struct AllReduce {
  ReduceKind kind{};
  Span span{};
  bool operator==(const AllReduce&) const = default;
};  // (Local) -> Replicated; not kNode
struct ReduceScatter {
  ReduceKind kind{};
  int dim = 0;
  Span span{};
  bool operator==(const ReduceScatter&) const = default;
};  // (Local) -> Sliced(dim)
struct AllGather {
  Span span{};
  bool operator==(const AllGather&) const = default;
};  // (Sliced) -> Replicated
struct Shard {
  int dim = 0;
  bool operator==(const Shard&) const = default;
};  // (Replicated) -> Sliced(dim): the own part, nothing moves
struct Broadcast {
  int root = 0;
  bool operator==(const Broadcast&) const = default;
};  // (Local) -> Replicated: rank root's
struct ReduceTo {
  ReduceKind kind{};
  int root = 0;
  bool operator==(const ReduceTo&) const = default;
};  // (Local) -> Local: on rank root, 0 elsewhere
struct AllToAll {
  int dim = 0;
  bool operator==(const AllToAll&) const = default;
};  // (Sliced) -> Sliced(dim)
struct Send {
  int shift = 1;
  bool operator==(const Send&) const = default;
};  // (a): the value of the stage `shift` before this one; 0 where there is none
struct Update {
  bool operator==(const Update&) const = default;
};  // (state, value): assigns in place, yields value
struct Output {
  std::string name;
  bool operator==(const Output&) const = default;
};  // (a) yields nothing

using Op =
    std::variant<Input, State, Const, WorldSize, Pointwise, Cast, Fold, Total, Dropout,
                 StochasticRound, MatMul, Transpose, Reshape, SubTensor, AllReduce, ReduceScatter,
                 AllGather, Shard, Broadcast, ReduceTo, AllToAll, Send, Update, Output>;

/// "all", "node", "across".
absl::string_view Name(Span span);
/// Of an AllReduce, ReduceScatter or AllGather; kAll of others.
Span SpanOf(const Op& op);

/// "sum", "mean", "amax", "amin": as in NumPy.
absl::string_view Name(FoldKind kind);
/// What reduces the contributions of several ranks: their sum, also for means.
ReduceKind AcrossRanks(FoldKind kind);

/// What computes each element from those of the same place, however the tensor is cut.
bool IsElementwise(const Op& op);
/// What computes values from those of the same place; of scalars, every kernel that needs the
/// result recomputes it.
bool IsComputation(const Op& op);

/// "all_reduce", "add", "input @g": for messages.
std::string OpText(const Op& op);

/// The whole operation as the text form writes it: "mul(%3, %5)", "input g : f32[N] local". Two
/// operations on the same operands are equal exactly when these texts are.
std::string OpText(const Op& op, absl::Span<const std::string> operands);

/// "0.9", "1e-08", "inf": the shortest text that reads back as the same number.
std::string NumberText(double value);

}  // namespace coconet

#endif  // COCONET_IR_OP_H_
