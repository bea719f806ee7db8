#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"
#include "coconet/ir/infer.h"

// The functions below hide the operations of the same names: a file that includes this header and
// looks into graphs too writes As<struct Update>(g, id).

namespace coconet {

class Gradients;
class Program;

/// A handle to a value of a Program, which outlives it; copy freely. Plain numbers convert to one,
/// are calculated with by EvalNumbers, and take the dtype of what they meet. Not thread-safe.
class Tensor {
 public:
  template <class T, class = decltype(Number(T()))>
  Tensor(T number) : number_(number) {}  // NOLINT: `0.9 * m` must read like the maths
  /// -1 unless this is a node of the program's graph.
  NodeId id() const { return id_; }
  /// Requires that this is no plain number. A failed operation has the type of a scalar f32.
  const TensorType& type() const;

 private:
  friend class Gradients;
  friend class Program;
  friend Tensor Elementwise(Pw fn, std::vector<Tensor> operands);
  friend Tensor Structured(Op op, std::vector<Tensor> operands);
  friend Tensor Between(Tensor a, int dim, int64_t begin, std::optional<int64_t> end);
  friend Tensor Extent(DType dtype, Tensor a, int dim);
  enum class Kind : uint8_t {
    kNode,
    kNumber,   // a plain number
    kWorld,    // the number of ranks, its dtype still open
    kMistake,  // of an operation that failed
  };
  Tensor(Kind kind, Program* program, NodeId id) : kind_(kind), program_(program), id_(id) {}
  bool is_node() const { return kind_ == Kind::kNode; }

  Kind kind_ = Kind::kNumber;
  Program* program_ = nullptr;  // null if no tensor was met yet
  NodeId id_ = -1;
  Number number_;
};

/// Builds a Graph. Mistakes do not throw or abort: the first error sticks, later calls do nothing,
/// and graph() returns it.
///
///   Program p("sgd");
///   Tensor g = p.Input("g", DType::kF32, {"N"}, Layout::Local());
///   Tensor w = p.State("w", DType::kF32, {"N"}, Layout::Replicated());
///   Tensor lr = p.Scalar("lr");
///   Update(w, w - lr * AllReduce(ReduceKind::kSum, g) / p.world());
///   absl::StatusOr<Graph> graph = p.graph();
class Program {
 public:
  explicit Program(absl::string_view name);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Tensor Input(absl::string_view name, DType dtype, Shape shape, Layout layout);
  Tensor State(absl::string_view name, DType dtype, Shape shape, Layout layout = Layout::Auto());
  /// A replicated 0-dimensional input, read at every run (learning rate, step number).
  Tensor Scalar(absl::string_view name, DType dtype = DType::kF32);
  /// Marks an input or state that was just declared: there is one per tensor of a list, whatever
  /// its shape (lists.h).
  Tensor Each(Tensor declared);
  /// Binds `symbol` to a list of sizes, one per tensor.
  void Sizes(absl::string_view symbol, std::vector<int64_t> sizes);
  Tensor Constant(const Number& value, DType dtype);
  /// Number of ranks; without `dtype` it takes that of the operand it meets.
  Tensor world(std::optional<DType> dtype = std::nullopt);
  /// Number of elements of a tensor of this shape, whose symbols may be bound later.
  Tensor count(DType dtype, Shape shape);
  /// This rank's number in its pipeline stage: a local scalar.
  Tensor rank(DType dtype);
  void Output(absl::string_view name, Tensor value);

  /// The first mistake so far.
  const absl::Status& status() const { return status_; }
  /// The program as written, or the first mistake. Checks that something is updated or output. C++
  /// leaves open which operand of an operator is evaluated first, so texts to compare are
  /// Canonicalize's.
  absl::StatusOr<Graph> graph() const;

  /// Adds one operation; what the functions below call.
  Tensor Add(Op op, std::vector<Tensor> operands);

 private:
  friend class Tensor;
  friend Tensor Between(Tensor a, int dim, int64_t begin, std::optional<int64_t> end);
  friend Tensor Extent(DType dtype, Tensor a, int dim);
  friend class Gradients;
  Tensor AddNode(Op op, std::vector<NodeId> inputs = {});
  Tensor Mistake(absl::string_view message);
  /// A number or world as a node of `dtype`.
  Tensor Typed(const Tensor& open, DType dtype);
  std::string OperandText(const Tensor& operand) const;
  std::string CallText(const Op& op, const std::vector<Tensor>& operands) const;

  Graph graph_;
  TypeChecker checker_;
  absl::Status status_;
  std::vector<NodeId> constants_;                           // for gradients
  std::map<NodeId, std::unique_ptr<Gradients>> gradients_;  // by loss
};

/// An elementwise function by its row; numbers alone are calculated at once.
Tensor Elementwise(Pw fn, std::vector<Tensor> operands);
/// Any operation, in the program of its operands.
Tensor Structured(Op op, std::vector<Tensor> operands);

// `+ - * /` and comparisons on tensors of the same dtype, NumPy broadcasting.
Tensor operator+(Tensor a, Tensor b);
Tensor operator-(Tensor a, Tensor b);
Tensor operator*(Tensor a, Tensor b);
Tensor operator/(Tensor a, Tensor b);
Tensor operator-(Tensor a);
Tensor operator<(Tensor a, Tensor b);
Tensor operator<=(Tensor a, Tensor b);
Tensor operator>(Tensor a, Tensor b);
Tensor operator>=(Tensor a, Tensor b);
Tensor Equal(Tensor a, Tensor b);
Tensor NotEqual(Tensor a, Tensor b);

// One function per row of coconet/ir/pointwise.inc: Abs(a), Min(a, b), ..., Select(a, b, c), which
// is b if the condition a holds, else c.
#define UNARY(name, ...) \
  inline Tensor name(Tensor a) { return Elementwise(Pw::k##name, {a}); }
#define BINARY(name, ...) \
  inline Tensor name(Tensor a, Tensor b) { return Elementwise(Pw::k##name, {a, b}); }
#define TERNARY(name, ...) \
  inline Tensor name(Tensor a, Tensor b, Tensor c) { return Elementwise(Pw::k##name, {a, b, c}); }
#include "coconet/ir/pointwise.inc"
#undef UNARY
#undef BINARY
#undef TERNARY

/// Operation T with the attributes that its struct begins with.
template <class T, class... A>
Tensor CallOf(std::vector<Tensor> operands, A... attributes) {
  return Structured(T{std::move(attributes)...}, std::move(operands));
}

inline Tensor CastTo(DType dtype, Tensor a) { return CallOf<Cast>({a}, dtype); }
inline Tensor BitCastTo(DType dtype, Tensor a) { return CallOf<BitCast>({a}, dtype); }
/// Each element's index along a dimension of the global tensor, in the shape and layout of `a`,
/// whose values do not matter.
inline Tensor Iota(DType dtype, Tensor a, int dim) { return CallOf<struct Iota>({a}, dtype, dim); }
/// The extent of a dimension of the global tensor `a`, whatever a rank has of it: a Program::count.
Tensor Extent(DType dtype, Tensor a, int dim);

// Reductions over dimensions of each rank's own elements; the dimensions become 1. All of them (the
// default): a scalar. If the tensor is sliced over one of them, the result is Local, what this
// rank's part contributes: AllReduce it.
inline Tensor Sum(Tensor a, std::vector<int> dims = {}) {
  return CallOf<Fold>({a}, FoldKind::kSum, std::move(dims));
}
inline Tensor Mean(Tensor a, std::vector<int> dims = {}) {
  return CallOf<Fold>({a}, FoldKind::kMean, std::move(dims));
}
inline Tensor AMax(Tensor a, std::vector<int> dims = {}) {
  return CallOf<Fold>({a}, FoldKind::kMax, std::move(dims));
}
inline Tensor AMin(Tensor a, std::vector<int> dims = {}) {
  return CallOf<Fold>({a}, FoldKind::kMin, std::move(dims));
}
/// Reduces a scalar over the tensors of a list; it is the scalar itself if there is one tensor.
inline Tensor Total(Tensor a, ReduceKind kind = ReduceKind::kSum) {
  return CallOf<struct Total>({a}, kind);
}

/// 0 with probability `rate`, else a / (1 - rate). Which elements are 0 depends on `seed`, an i64
/// scalar, on `stream`, and on the element's place in the global tensor only.
Tensor Dropout(Tensor a, double rate, Tensor seed, int64_t stream = 0);
/// f32 to one of the two bf16 numbers around it, at random, so that the mean is `a`: what keeps
/// small steps of bf16 weights from being lost. Drawn as Dropout draws; take another stream.
Tensor RoundStochastic(Tensor a, Tensor seed, int64_t stream = 0);
/// The product of matrices in the last two dimensions; leading dimensions broadcast.
inline Tensor MatMul(Tensor a, Tensor b, bool transpose_a = false, bool transpose_b = false) {
  return CallOf<struct MatMul>({a, b}, transpose_a, transpose_b);
}
/// The same of 8-bit floats times the f32 scales of their blocks (MatMul in coconet/ir/op.h).
Tensor MatMul(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, bool transpose_a = false,
              bool transpose_b = false);
inline Tensor Transpose(Tensor a, std::vector<int> order) {
  return CallOf<struct Transpose>({a}, std::move(order));
}
inline Tensor Reshape(Tensor a, Shape shape) {
  return CallOf<struct Reshape>({a}, std::move(shape));
}
/// Extents of 1, and dimensions that `a` lacks, become those of `shape`.
inline Tensor Expand(Tensor a, Shape shape) { return CallOf<struct Expand>({a}, std::move(shape)); }
/// The elements along each of the dimensions from the last to the first.
inline Tensor Reverse(Tensor a, std::vector<int> dims) { return CallOf<struct Reverse>({a}, dims); }
inline Tensor SubTensor(Tensor a, int dim, int64_t begin, int64_t end) {
  return CallOf<struct SubTensor>({a}, dim, begin, end);
}
/// The same range as Python counts it, from the end if a number is negative or missing, which wants
/// an extent that is no symbol. All of a dimension is `a` itself. Rows takes the first dimension.
Tensor Between(Tensor a, int dim, int64_t begin, std::optional<int64_t> end = std::nullopt);
inline Tensor Rows(Tensor a, int64_t begin, std::optional<int64_t> end = std::nullopt) {
  return Between(a, 0, begin, end);
}
/// The table with its dimension `dim` replaced by those of `indices`, i32: a row of the table per
/// index, zeros for an index that is negative or too large. If the table is sliced over `dim`, each
/// rank has the rows that it holds, and zeros elsewhere: AllReduce the sum.
inline Tensor Gather(Tensor table, Tensor indices, int dim = 0) {
  return CallOf<struct Gather>({table, indices}, dim);
}

inline Tensor AllReduce(ReduceKind kind, Tensor local, Span span = Span::kAll) {
  return CallOf<struct AllReduce>({local}, kind, span);
}
inline Tensor ReduceScatter(ReduceKind kind, Tensor local, Cut to = 0, Span span = Span::kAll) {
  return CallOf<struct ReduceScatter>({local}, kind, std::move(to), span);
}
inline Tensor AllGather(Tensor sliced, Span span = Span::kAll) {
  return CallOf<struct AllGather>({sliced}, span);
}
/// Each rank's part of what all have; nothing moves.
inline Tensor Shard(Tensor replicated, Cut to = 0) {
  return CallOf<struct Shard>({replicated}, std::move(to));
}
inline Tensor Broadcast(Tensor local, int root) { return CallOf<struct Broadcast>({local}, root); }
/// The reduction on rank `root`; 0 elsewhere.
inline Tensor Reduce(ReduceKind kind, Tensor local, int root) {
  return CallOf<ReduceTo>({local}, kind, root);
}
/// The same tensor, sliced over another dimension, or owned by one rank.
inline Tensor AllToAll(Tensor sliced, Cut to) { return CallOf<struct AllToAll>({sliced}, to); }
/// The value of the previous (`shift` is 1) or next (-1) stage; 0 in the first or last one.
inline Tensor Send(Tensor a, int shift = 1) { return CallOf<struct Send>({a}, shift); }
/// Assigns `value` to `state` in place at the end of the step, and yields it.
inline Tensor Update(Tensor state, Tensor value) { return CallOf<struct Update>({state, value}); }

}  // namespace coconet
