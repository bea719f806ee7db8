#ifndef COCONET_LANGUAGE_LANGUAGE_H_
#define COCONET_LANGUAGE_LANGUAGE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/ir/graph.h"
#include "coconet/ir/infer.h"

// The functions below hide the operations of the same names: a file that includes this header and
// looks into graphs too writes As<struct Update>(g, id).

namespace coconet {

class Program;

/// A handle to a value of a Program; copy freely. Plain numbers convert where a tensor is expected,
/// are calculated with in double, and take the dtype of the tensor they meet. The Program must
/// outlive its tensors. Not thread-safe.
class Tensor {
 public:
  Tensor(double number) : number_(number) {}  // NOLINT: `0.9 * m` must read like the maths
  /// -1 unless this is a node of the program's graph.
  NodeId id() const { return id_; }
  /// Requires id() >= 0.
  const TensorType& type() const;

 private:
  friend class Program;
  friend Tensor Elementwise(Pw fn, std::vector<Tensor> operands);
  friend Tensor Structured(Op op, std::vector<Tensor> operands);
  enum class Kind : uint8_t {
    kNode,
    kNumber,   // a plain number
    kWorld,    // the number of ranks, its dtype still open
    kMistake,  // of an operation that failed
  };
  Tensor(Kind kind, Program* program, NodeId id) : kind_(kind), program_(program), id_(id) {}
  bool is_node() const { return kind_ == Kind::kNode; }

  Kind kind_ = Kind::kNumber;
  Program* program_ = nullptr;  // null where no tensor was met yet
  NodeId id_ = -1;
  double number_ = 0;
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
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Tensor Input(absl::string_view name, DType dtype, Shape shape, Layout layout);
  Tensor State(absl::string_view name, DType dtype, Shape shape, Layout layout = Layout::Auto());
  /// A replicated 0-dimensional input, read at every run (learning rate, step number).
  Tensor Scalar(absl::string_view name, DType dtype = DType::kF32);
  /// `declared`, an input or state just declared, is there once a tensor of a list, whatever its
  /// shape (lists.h).
  Tensor Each(Tensor declared);
  /// `symbol` is bound to a list of sizes, one a tensor.
  void Sizes(absl::string_view symbol, std::vector<int64_t> sizes);
  Tensor Constant(double value, DType dtype);
  /// Number of ranks; without `dtype` it takes that of the operand it meets.
  Tensor world(std::optional<DType> dtype = std::nullopt);
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
  Tensor AddNode(Op op, std::vector<NodeId> inputs = {});
  Tensor Mistake(absl::string_view message);
  /// A number or world as a node of `dtype`.
  Tensor Typed(const Tensor& open, DType dtype);
  std::string OperandText(const Tensor& operand) const;
  std::string CallText(const Op& op, const std::vector<Tensor>& operands) const;

  Graph graph_;
  TypeChecker checker_;
  absl::Status status_;
};

/// An elementwise function by its row; numbers alone are calculated at once.
Tensor Elementwise(Pw fn, std::vector<Tensor> operands);

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
Tensor Abs(Tensor a);
Tensor Min(Tensor a, Tensor b);
Tensor Max(Tensor a, Tensor b);
Tensor Pow(Tensor a, Tensor b);
Tensor Sqrt(Tensor a);
Tensor Rsqrt(Tensor a);
Tensor Exp(Tensor a);
Tensor Log(Tensor a);
Tensor Tanh(Tensor a);
Tensor Sigmoid(Tensor a);
Tensor Relu(Tensor a);
Tensor Gelu(Tensor a);
Tensor Silu(Tensor a);
Tensor Select(Tensor condition, Tensor if_true, Tensor if_false);
Tensor CastTo(DType dtype, Tensor a);

// Reductions over dimensions of each rank's own elements; the dimensions become 1. All of them (the
// default): a scalar. Of a tensor sliced over one of them the result is Local, what this rank's
// part contributes: AllReduce it.
Tensor Sum(Tensor a, std::vector<int> dims = {});
Tensor Mean(Tensor a, std::vector<int> dims = {});
Tensor AMax(Tensor a, std::vector<int> dims = {});
Tensor AMin(Tensor a, std::vector<int> dims = {});
/// Over the tensors of a list, of a scalar that each has; of a single tensor the scalar itself.
Tensor Total(Tensor a, ReduceKind kind = ReduceKind::kSum);
// Composed of the above; with an AllReduce where slices make it necessary.
Tensor Norm(Tensor a);     // sqrt(sum of squares) of the whole tensor
Tensor Softmax(Tensor a);  // over the last dimension
Tensor LayerNorm(Tensor a,
                 Tensor epsilon);  // (a - mean) / sqrt(variance + epsilon) over the last dimension
Tensor RmsNorm(Tensor a,
               Tensor epsilon);  // a / sqrt(mean of squares + epsilon) over the last dimension
/// 0 with probability `rate`, else a / (1 - rate). Which elements are 0 depends on `seed`, an i64
/// scalar, on `stream`, and on the element's place in the global tensor only.
Tensor Dropout(Tensor a, double rate, Tensor seed, int64_t stream = 0);
/// f32 to one of the two bf16 numbers around it, at random, so that the mean is `a`: what keeps
/// small steps of bf16 weights from being lost. Drawn as Dropout draws; take another stream.
Tensor RoundStochastic(Tensor a, Tensor seed, int64_t stream = 0);
/// Of the last two dimensions; leading ones are equal, or one operand has none.
Tensor MatMul(Tensor a, Tensor b, bool transpose_a = false, bool transpose_b = false);
Tensor Transpose(Tensor a, std::vector<int> order);
Tensor Reshape(Tensor a, Shape shape);
Tensor SubTensor(Tensor a, int dim, int64_t begin, int64_t end);

Tensor AllReduce(ReduceKind kind, Tensor local, Span span = Span::kAll);
Tensor ReduceScatter(ReduceKind kind, Tensor local, int dim = 0, Span span = Span::kAll);
Tensor AllGather(Tensor sliced, Span span = Span::kAll);
Tensor Shard(Tensor replicated, int dim = 0);  // each rank's part of what all have; nothing moves
Tensor Broadcast(Tensor local, int root);
Tensor Reduce(ReduceKind kind, Tensor local, int root);  // on rank `root`; 0 elsewhere
Tensor AllToAll(Tensor sliced, int dim);  // the same tensor, sliced over another dimension
/// The value that the stage `shift` (1 or -1) before this one has; 0 in the first (last) stage.
Tensor Send(Tensor a, int shift = 1);
/// Assigns `value` to `state` in place at the end of the step, and yields it.
Tensor Update(Tensor state, Tensor value);

}  // namespace coconet

#endif  // COCONET_LANGUAGE_LANGUAGE_H_
