#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coconet/base/numerics.h"
#include "coconet/ir/typed_graph.h"

namespace coconet {

/// Where the interpreter reads inputs and states: elements of the *global* tensor `name` (row
/// major), on `rank` for a Local tensor (the first rank of the stage is asked for Replicated and
/// Sliced ones). Values must be representable in the tensor's dtype.
class ElementSource {
 public:
  /// Writes elements `indices` to `out`, in that order.
  using Many = std::function<void(const std::string& name, int rank,
                                  absl::Span<const int64_t> indices, Number* out)>;
  static ElementSource OfMany(Many read) { return ElementSource(std::move(read)); }
  /// A function that returns element `index`: Number(const std::string& name, int rank, int64_t
  /// index).
  template <class Element, class = std::enable_if_t<std::is_invocable_r_v<
                               Number, Element, const std::string&, int, int64_t>>>
  ElementSource(Element element)
      : read_([element = std::move(element)](const std::string& name, int rank,
                                             absl::Span<const int64_t> indices, Number* out) {
          for (const int64_t index : indices) *out++ = element(name, rank, index);
        }) {}

  void Read(const std::string& name, int rank, absl::Span<const int64_t> indices,
            Number* out) const {
    read_(name, rank, indices, out);
  }
  Number operator()(const std::string& name, int rank, int64_t index) const {
    Number element;
    read_(name, rank, {&index, 1}, &element);
    return element;
  }

 private:
  explicit ElementSource(Many read) : read_(std::move(read)) {}
  Many read_;
};

/// Expected values of some elements of one result, with a bound on what a correct implementation
/// may differ by.
struct Expected {
  std::vector<Number> value;  // real of floats, else integers
  std::vector<double> error;  // absolute, >= 0; infinity if the result is not determined
};

struct Evaluated;
struct EvaluationCache;

/// Reference semantics of a bound program (no symbols) over `ranks` ranks: plain real arithmetic in
/// double, exact for integers, any schedule of the graph included (ReduceScatter, AllGather, Sliced
/// states). With `stages`, the world is so many groups of `ranks` ranks in a line, each of which
/// runs the program on values of its own; Send passes some on. The ranks of a group lie on `nodes`
/// nodes, one after the other and as many on each; that matters to collectives within and across
/// nodes only.
///
/// `error` is a running first-order bound: every operation of dtype T adds its rounding
/// (PwInfo::ulps * UnitRoundoff(T), narrow results as if each were stored), the rounding of a
/// sum over ranks in any order adds (ranks-1) roundings of the sum of magnitudes (of narrow floats
/// in f32, and one of the sum, unless Numerics admit more: BoundedReduce), and operand errors are
/// carried through by evaluating the function at the operands' bounds. Sums over elements are
/// accumulated in double precision (those to a scalar by each rank over a part of its own, which it
/// may round to single precision), matrix products in single precision in any order. So
/// ill-conditioned elements get an honest tolerance, the others a tight one, and nothing has to be
/// tuned by hand.
class Interpreter {
 public:
  /// Fails with InvalidArgument if the graph does not infer or is not bound, if it names a rank
  /// beyond the world's, or if the ranks cannot be divided into equal nodes.
  static absl::StatusOr<Interpreter> Create(Graph program, int ranks, int stages = 1, int nodes = 1,
                                            const Numerics& numerics = {});

  /// Result names: every updated state and every output, in graph order.
  const std::vector<std::string>& results() const { return results_; }
  const TensorType& type(const std::string& result) const;

  /// Evaluator::Evaluate once.
  absl::StatusOr<Expected> Evaluate(const std::string& result, int rank,
                                    absl::Span<const int64_t> indices,
                                    const ElementSource& source) const;

 private:
  friend class Evaluator;
  Interpreter() = default;
  TypedGraph program_;
  int ranks_ = 1, nodes_ = 1, stages_ = 1;
  Numerics numerics_;
  std::vector<std::string> results_;
  std::map<std::string, NodeId> result_node_;
};

/// An interpreter on one set of inputs. Remembers costly results: folds over whole tensors, lines
/// of matrices.
class Evaluator {
 public:
  /// `interpreter` must outlive this.
  Evaluator(const Interpreter& interpreter, ElementSource source);
  ~Evaluator();

  /// Elements `indices` (global, row major) of `result` after one step, on `rank` of the world
  /// (matters for Local results and stages only). Any window of any tensor may be asked; cost is
  /// proportional to the window, and to the tensors that it sums over.
  /// Cancelled if `stop` of StopWhen returns true.
  absl::StatusOr<Expected> Evaluate(const std::string& result, int rank,
                                    absl::Span<const int64_t> indices);

  /// For callers that will ask for most elements of all results: values that folds, products and
  /// look-ups need, and the results of these, are computed in full, once, and kept, unless there
  /// are very many. Results are the same.
  void KeepWholeValues();
  /// Forgets what is remembered.
  void Forget();

  /// Evaluate asks `stop` every few thousand elements, and ends if it returns true.
  void StopWhen(std::function<bool()> stop);

 private:
  Evaluated InProgram() const;

  const Interpreter& interpreter_;
  ElementSource source_;
  std::unique_ptr<EvaluationCache> cache_;
};

}  // namespace coconet
