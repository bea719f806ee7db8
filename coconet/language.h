#ifndef COCONET_LANGUAGE_H_
#define COCONET_LANGUAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "coconet/graph.h"
#include "coconet/infer.h"

namespace coconet {

class Program;

/// A handle to a value of a Program; copy freely. Plain numbers convert where a tensor is expected and
/// take the dtype of the other operand. The Program must outlive its tensors. Not thread-safe.
class Tensor {
 public:
  Tensor(double number) : number_(number) {}  // NOLINT: `0.9 * m` must read like the maths
  NodeId id() const { return id_; }
  const TensorType& type() const;

 private:
  friend class Program;
  Tensor(Program* program, NodeId id) : program_(program), id_(id) {}
  Program* program_ = nullptr;  // null: a plain number
  NodeId id_ = -1;
  double number_ = 0;
};

/// Builds a Graph. Mistakes do not throw or abort: the first error sticks, later calls do nothing, and
/// graph() returns it.
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
  Tensor Constant(double value, DType dtype);
  /// Number of ranks; takes the dtype of the operand it meets.
  Tensor world();
  void Output(absl::string_view name, Tensor value);

  /// The program, or the first error made while writing it. Checks that something is updated or output.
  absl::StatusOr<Graph> graph() const;

  /// Adds one operation; what the functions below call.
  Tensor Add(Op op, std::vector<Tensor> inputs);

 private:
  friend class Tensor;
  Graph graph_;
  std::vector<TensorType> types_;
  absl::Status status_;
};

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
Tensor AllReduce(ReduceKind kind, Tensor local);
Tensor ReduceScatter(ReduceKind kind, Tensor local, int dim = 0);
Tensor AllGather(Tensor sliced);
/// Assigns `value` to `state` in place at the end of the step, and yields it.
Tensor Update(Tensor state, Tensor value);

}  // namespace coconet

#endif  // COCONET_LANGUAGE_H_
